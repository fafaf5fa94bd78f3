//! The console as browsers and authenticators know it.

use std::net::Ipv4Addr;
use webauthn_rp::request::{AsciiDomain, RpId};
use wharf_config::BaseUrl;

/// The host for which passkeys are made, and the origin of the pages that may use them.
#[derive(Debug, Clone)]
pub struct RelyingParty {
    pub(super) id: RpId,
    pub(super) origin: String,
}

impl RelyingParty {
    /// The console at a URL; none if browsers know no passkeys there. They need a host name, and TLS
    /// unless the host is this machine.
    pub fn of(url: &BaseUrl) -> Option<Self> {
        let host = url.host();
        let is_address = host.starts_with('[') || host.parse::<Ipv4Addr>().is_ok();
        if is_address || !(url.is_https() || host == "localhost") {
            return None;
        }
        let id = RpId::Domain(AsciiDomain::try_from(host.to_owned()).ok()?);
        let origin = url.origin().to_owned();
        Some(Self { id, origin })
    }

    pub(in super::super) fn host(&self) -> &str {
        self.id.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::RelyingParty;
    use wharf_config::BaseUrl;

    #[test]
    fn passkeys_need_a_host_name_and_a_secure_page() {
        let host = |url: &str| {
            let url = BaseUrl::try_from(url.to_owned()).unwrap();
            RelyingParty::of(&url).map(|console| (console.host().to_owned(), console.origin))
        };
        for (url, name) in [
            ("https://Wharf.example:8443", "wharf.example"),
            ("http://localhost:8080", "localhost"),
        ] {
            let url_in_lowercase = url.to_lowercase();
            assert_eq!(host(url), Some((name.to_owned(), url_in_lowercase)));
        }
        for url in [
            "http://wharf.example",
            "https://192.0.2.1",
            "http://127.0.0.1:8080",
            "https://[2001:db8::1]",
        ] {
            assert_eq!(host(url), None, "{url}");
        }
    }
}

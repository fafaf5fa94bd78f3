//! `[pages]`: pages of instances by name.

use super::check::wrong;
use super::{AcmeConfig, BaseUrl, Config, ConfigError, acme};
use serde::Deserialize;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Longest domain. A label and a dot come before it in a host name, which has at most 253 characters.
const MAX_DOMAIN: usize = 253 - MAX_LABEL - 1;
/// Longest label of a host name.
const MAX_LABEL: usize = 63;

/// Pages of instances by name, such as `https://NAME.wharf-pages.example/`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PagesConfig {
    /// The domain above the names, required, such as `wharf-pages.example`. It should be a registrable
    /// domain of its own, because pages of different users are one site for browsers otherwise.
    pub domain: Domain,
    /// Address and port, required. Port 0 selects a free port.
    pub listen: SocketAddr,
    /// Path of the certificate chain for `*.DOMAIN`, in PEM format. Default: plain HTTP, for a proxy.
    pub cert: Option<PathBuf>,
    /// Path of the private key, required with `cert`.
    pub key: Option<PathBuf>,
    /// An authority that issues the certificate. Default: none; excludes `cert` and `key`.
    pub acme: Option<AcmeConfig>,
    /// Whether users may show ports of their instances to everyone. Default false.
    #[serde(default)]
    pub public: bool,
}

/// The name of a domain in lower case.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Domain(String);

impl Domain {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a host is the domain or below it.
    pub fn contains(&self, host: &str) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host).as_bytes();
        let rest = host.len().checked_sub(self.0.len());
        rest.and_then(|rest| host.split_at_checked(rest))
            .is_some_and(|(labels, domain)| {
                domain.eq_ignore_ascii_case(self.0.as_bytes())
                    && (labels.is_empty() || labels.ends_with(b"."))
            })
    }

    /// Whether only browsers of this machine reach it.
    pub fn is_local(&self) -> bool {
        self.0.ends_with(".localhost")
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Domain {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let is_label = |label: &str| {
            let allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
            (1..=MAX_LABEL).contains(&label.len())
                && label.bytes().all(allowed)
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        let is_name = text.contains('.')
            && text.split('.').all(is_label)
            && text
                .rsplit('.')
                .next()
                .is_some_and(|top| !top.bytes().all(|b| b.is_ascii_digit()));
        if is_name && text.len() <= MAX_DOMAIN {
            Ok(Self(text.to_ascii_lowercase()))
        } else {
            Err("`pages.domain` must be the name of a domain, such as wharf-pages.example")
        }
    }
}

impl PagesConfig {
    /// Whether the pages are served with a certificate.
    pub fn is_tls(&self) -> bool {
        self.cert.is_some() || self.acme.is_some()
    }

    /// The port in addresses of pages. A proxy with TLS has the usual one.
    pub fn public_port(&self, is_https: bool) -> u16 {
        if is_https && !self.is_tls() {
            443
        } else {
            self.listen.port()
        }
    }
}

impl Config {
    /// The address of the page with a label, if pages have names.
    pub fn page_url(&self, label: &str) -> Option<String> {
        let pages = self.pages.as_ref()?;
        let host = format!("{label}.{}", pages.domain);
        let is_https = self.pages_are_https();
        let scheme = if is_https { "https" } else { "http" };
        let port = pages.public_port(is_https);
        Some(BaseUrl::of(scheme, &host, port).origin().to_owned() + "/")
    }

    /// Whether browsers reach pages by name over TLS: with the certificate, or that of a proxy, which an
    /// https console has.
    pub fn pages_are_https(&self) -> bool {
        let is_tls = self.pages.as_ref().is_some_and(PagesConfig::is_tls);
        is_tls || self.base_url().is_https()
    }
}

/// Checks the domain against the host of the console and that of pages at ports.
pub(super) fn check(config: &Config) -> Result<(), ConfigError> {
    let Some(pages) = &config.pages else {
        return Ok(());
    };
    let domain = &pages.domain;
    acme::check(pages)?;
    if pages.cert.is_some() != pages.key.is_some() {
        return wrong("pages.key", "must be set with `pages.cert`");
    }
    if domain.contains(config.base_url().host()) {
        return wrong(
            "pages.domain",
            &format!(
                "the console at {} is at or below `{domain}`, where instances would share its cookies; \
                 give the pages a domain of their own",
                config.base_url()
            ),
        );
    }
    for (setting, host) in [
        ("web.host", &config.web.host),
        ("ssh_host", &config.ssh_host),
    ] {
        if domain.contains(host) {
            return wrong(
                setting,
                &format!("must not be at or below `{domain}`, which is for pages by name"),
            );
        }
    }
    if !config.session.enabled {
        return wrong(
            "pages",
            "needs `session.enabled`: visitors sign in at the console",
        );
    }
    if pages.listen.port() != 0 && pages.listen == config.listen {
        return wrong("pages.listen", "must differ from `listen`");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Domain;

    #[test]
    fn a_domain_contains_itself_and_the_names_below_it() {
        let domain = Domain::try_from("Pages.Example".to_owned()).unwrap();
        assert_eq!(domain.as_str(), "pages.example");
        for (host, is_inside) in [
            ("pages.example", true),
            ("PAGES.EXAMPLE.", true),
            ("a.pages.example", true),
            ("a.b.pages.example", true),
            ("apages.example", false),
            ("example", false),
            ("wharf.example", false),
            ("", false),
        ] {
            assert_eq!(domain.contains(host), is_inside, "{host}");
        }
        for wrong in [
            "",
            "pages",
            ".example",
            "pages.",
            "a_b.example",
            "127.0.0.1",
            "-a.example",
            "a..b",
        ] {
            assert!(Domain::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
        assert!(Domain::try_from(format!("{}.example", "a".repeat(64))).is_err());
    }
}

//! `[oidc]`: sign-in with an account at a provider of OpenID Connect.

use http::Uri;
use serde::Deserialize;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use wharf_domain::email::canonical;

/// A provider of OpenID Connect, and the persons who sign in with it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OidcConfig {
    /// URL of the provider, required. Its document is at `/.well-known/openid-configuration` below it.
    pub issuer: Issuer,
    /// Id of Wharf at the provider, required.
    pub client_id: String,
    /// Path of the file with the secret of Wharf at the provider, required. No other account of the
    /// machine may read it.
    pub client_secret_file: PathBuf,
    /// Name of the provider on the page that signs users in. Default: the host of `issuer`.
    pub name: Option<String>,
    /// E-mail addresses that sign in. One of `allow_emails` and `allow_domains` is required.
    #[serde(default)]
    pub allow_emails: Vec<String>,
    /// Domains whose e-mail addresses sign in, without `@`.
    #[serde(default)]
    pub allow_domains: Vec<String>,
    /// Whether an address of no user creates a user. Default false.
    #[serde(default)]
    pub create_users: bool,
}

impl OidcConfig {
    /// The name of the provider for people.
    pub fn shown_name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.issuer.host)
    }

    /// Whether a verified address may sign in.
    pub fn allows(&self, email: &str) -> bool {
        let Ok(email) = canonical(email) else {
            return false;
        };
        let local = email.rsplit_once('@').map_or("", |(local, _)| local);
        let domains = self.allow_domains.iter();
        let mut allowed = domains
            .map(|domain| canonical(&format!("{local}@{domain}")))
            .chain(self.allow_emails.iter().map(|email| canonical(email)));
        allowed.any(|allowed| allowed.is_ok_and(|allowed| allowed == email))
    }

    /// The first rule that the settings break: the key and the rule.
    pub(super) fn broken_rule(&self) -> Option<(&'static str, &'static str)> {
        let is_address = |text: &String| {
            let (local, domain) = text.rsplit_once('@').unwrap_or_default();
            !local.is_empty() && !domain.is_empty()
        };
        let is_domain = |text: &String| !text.is_empty() && !text.contains(['@', '*', ' ', '/']);
        if self.client_id.is_empty() {
            return Some(("client_id", "must not be empty"));
        }
        if self.allow_emails.is_empty() && self.allow_domains.is_empty() {
            return Some((
                "allow_domains",
                "must have a domain, or `allow_emails` an address: without them, all accounts of the \
                 provider could sign in",
            ));
        }
        if !self.allow_emails.iter().all(is_address) {
            return Some((
                "allow_emails",
                "must have e-mail addresses, such as ann@example.org",
            ));
        }
        if !self.allow_domains.iter().all(is_domain) {
            return Some(("allow_domains", "must have domains, such as example.org"));
        }
        if self.name.as_deref().is_some_and(str::is_empty) {
            return Some(("name", "must not be empty"));
        }
        None
    }
}

/// The URL of a provider. It is compared as text, so it stays as it was given.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Issuer {
    url: String,
    host: String,
}

impl Issuer {
    /// The URL.
    pub fn as_str(&self) -> &str {
        &self.url
    }
}

impl fmt::Display for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)
    }
}

/// The rule for `oidc.issuer`.
const FORM: &str = "`oidc.issuer` must be an https URL without a query, such as \
                    https://login.example.org; http is for a provider on this machine only";

impl TryFrom<String> for Issuer {
    type Error = &'static str;

    fn try_from(url: String) -> Result<Self, Self::Error> {
        let uri: Uri = url.parse().map_err(|_| FORM)?;
        let authority = uri.authority().ok_or(FORM)?;
        let plain = !authority.as_str().contains('@') && !url.contains(['?', '#']);
        if !plain || !is_protected(&uri) {
            return Err(FORM);
        }
        let host = authority.host().to_owned();
        Ok(Self { url, host })
    }
}

/// Whether requests to a URL stay on this machine or are encrypted.
pub fn is_protected(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let is_local = host.eq_ignore_ascii_case("localhost")
        || bare.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
    match uri.scheme_str() {
        Some("https") => !host.is_empty(),
        Some("http") => is_local,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{Issuer, OidcConfig};

    #[test]
    fn issuers_are_protected() {
        for right in [
            "https://login.example.org",
            "https://login.example.org/realms/one/",
            "http://127.0.0.1:8080",
            "http://[::1]:8080/x",
            "http://localhost",
        ] {
            let issuer = Issuer::try_from(right.to_owned()).unwrap();
            assert_eq!(issuer.as_str(), right);
        }
        for wrong in [
            "",
            "login.example.org",
            "http://login.example.org",
            "http://192.0.2.1",
            "https://login.example.org?x=1",
            "https://login.example.org#x",
            "https://ann@login.example.org",
            "ftp://127.0.0.1",
        ] {
            assert!(Issuer::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_allow_list_is_needed_and_compared_without_case() {
        let config = |more: &str| {
            let text = format!(
                "issuer = \"https://login.example.org\"\nclient_id = \"wharf\"\n\
                 client_secret_file = \"secret\"\n{more}"
            );
            toml::from_str::<OidcConfig>(&text).unwrap()
        };
        let none = config("").broken_rule().unwrap();
        assert_eq!(none.0, "allow_domains");
        for wrong in ["@example.org", "*", "", "a b"] {
            let config = config(&format!("allow_domains = [\"{wrong}\"]"));
            assert_eq!(config.broken_rule().unwrap().0, "allow_domains", "{wrong}");
        }
        let wrong = config("allow_emails = [\"example.org\"]");
        assert_eq!(wrong.broken_rule().unwrap().0, "allow_emails");
        let both = config("allow_emails = [\"Bob@other.org\"]\nallow_domains = [\"Example.org\"]");
        assert_eq!(both.broken_rule(), None);
        for (email, allowed) in [
            ("ann@example.org", true),
            ("ANN@EXAMPLE.ORG", true),
            ("bob@OTHER.org", true),
            ("ann@other.org", false),
            ("ann@sub.example.org", false),
            ("ann@evilexample.org", false),
            ("example.org", false),
            ("", false),
        ] {
            assert_eq!(both.allows(email), allowed, "{email}");
        }
    }
}

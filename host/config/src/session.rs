//! `base_url` and `[session]`: the console and the sessions of its users.

use super::Config;
use http::Uri;
use serde::Deserialize;
use std::fmt;

/// Sessions of the console.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SessionConfig {
    /// Whether users can sign in. Default true. Without it only API keys are accepted.
    pub enabled: bool,
    /// Time in hours without a request after which a session ends. Default 72, which spans a weekend.
    pub idle_hours: u32,
    /// Time in days from the sign-in until a session ends. Default 30.
    pub absolute_days: u32,
}

impl Default for SessionConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            idle_hours: 72,
            absolute_days: 30,
        }
    }
}

/// The public URL of the console: scheme, host and port.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct BaseUrl {
    origin: String,
    host: String,
}

impl BaseUrl {
    /// The URL as browsers write it in `Origin`: in lowercase, without a path and the default port.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The name of the host, without the port.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Whether browsers reach the console over TLS.
    pub fn is_https(&self) -> bool {
        self.origin.starts_with("https:")
    }

    pub(super) fn of(scheme: &str, host: &str, port: u16) -> Self {
        let usual = if scheme == "https" { 443 } else { 80 };
        let host = host.to_ascii_lowercase();
        let origin = if port == usual {
            format!("{scheme}://{host}")
        } else {
            format!("{scheme}://{host}:{port}")
        };
        Self { origin, host }
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.origin)
    }
}

/// The rule for `base_url`.
const FORM: &str = "`base_url` must be http:// or https:// with a host name and perhaps a port, such \
                    as https://wharf.example.org";

impl TryFrom<String> for BaseUrl {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let uri: Uri = text.parse().map_err(|_| FORM)?;
        let (scheme, authority) = uri.scheme_str().zip(uri.authority()).ok_or(FORM)?;
        let port = match scheme {
            "http" => 80,
            "https" => 443,
            _ => return Err(FORM),
        };
        // The port of the authority is none if it is not a number.
        let has_port = authority.as_str().len() > authority.host().len();
        let bare = matches!(uri.path(), "" | "/") && uri.query().is_none();
        let plain = !authority.as_str().contains('@') && !authority.host().is_empty();
        if !bare || !plain || (has_port && authority.port_u16().is_none()) {
            return Err(FORM);
        }
        let port = authority.port_u16().unwrap_or(port);
        Ok(Self::of(scheme, authority.host(), port))
    }
}

impl Config {
    /// Returns the public URL of the console. The default has another host name than the pages of
    /// instances, because browsers send a cookie to all ports of a host.
    pub fn base_url(&self) -> BaseUrl {
        if let Some(url) = &self.base_url {
            return url.clone();
        }
        let (ip, port) = (self.listen.ip(), self.listen.port());
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let host = if ip.is_loopback() || ip.is_unspecified() {
            if self.web.host.eq_ignore_ascii_case("localhost") {
                "127.0.0.1".to_owned()
            } else {
                "localhost".to_owned()
            }
        } else if ip.is_ipv6() {
            format!("[{ip}]")
        } else {
            ip.to_string()
        };
        BaseUrl::of(scheme, &host, port)
    }
}

#[cfg(test)]
mod tests {
    use super::BaseUrl;

    #[test]
    fn urls_of_the_console() {
        for (text, origin, host) in [
            ("https://A.example", "https://a.example", "a.example"),
            ("https://a.example:443/", "https://a.example", "a.example"),
            (
                "http://a.example:8080",
                "http://a.example:8080",
                "a.example",
            ),
            ("http://[::1]:80", "http://[::1]", "[::1]"),
        ] {
            let url = BaseUrl::try_from(text.to_owned()).unwrap();
            assert_eq!((url.origin(), url.host()), (origin, host));
        }
        for wrong in [
            "",
            "a.example",
            "ftp://a.example",
            "http://a.example/x",
            "http://a.example?x",
            "http://ann@a.example",
            "http://a.example:x",
            "http://a.example:99999",
            "http://",
        ] {
            assert!(BaseUrl::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }
}

//! The headers of a request on its way to a page.

use crate::cookie;
use crate::hop::end_to_end;
use crate::web_socket;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, CONTENT_LENGTH, COOKIE, EXPECT, FORWARDED, HOST};
use http::{HeaderMap, HeaderName, HeaderValue};
use std::net::IpAddr;
use wharf_domain::secret::SecretText;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// The beginning of Wharf's API keys, which no page may see.
const KEY_PREFIX: &str = "wharf_";

/// The facts that the gateway adds to a request.
pub(crate) struct ToPage<'a> {
    /// The host as it was received.
    pub(crate) host: &'a str,
    pub(crate) scheme: &'static str,
    pub(crate) client: IpAddr,
    pub(crate) credential: Option<&'a SecretText>,
    /// Whether `Authorization` has the password of the instance, which was meant for the gateway.
    pub(crate) authorization_is_spent: bool,
    pub(crate) is_socket: bool,
}

impl ToPage<'_> {
    /// Returns the headers that the page gets; none if a value is not a header.
    pub(crate) fn rewrite(&self, received: &HeaderMap) -> Option<HeaderMap> {
        let mut headers = HeaderMap::with_capacity(received.len() + 6);
        headers.insert(HOST, HeaderValue::from_str(self.host).ok()?);
        for (name, value) in end_to_end(received) {
            if self.passes(name, value) {
                headers.append(name.clone(), value.clone());
            }
        }
        if let Some(cookies) = passed_cookies(received) {
            headers.insert(COOKIE, cookies);
        }
        if let Some(credential) = self.credential {
            let mut value = HeaderValue::from_str(credential.expose()).ok()?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let client = self.client.to_string();
        headers.insert(X_FORWARDED_FOR, HeaderValue::try_from(client).ok()?);
        headers.insert(X_FORWARDED_PROTO, HeaderValue::from_static(self.scheme));
        headers.insert(X_FORWARDED_HOST, HeaderValue::from_str(self.host).ok()?);
        if self.is_socket {
            web_socket::add_upgrade(&mut headers);
        }
        Some(headers)
    }

    fn passes(&self, name: &HeaderName, value: &HeaderValue) -> bool {
        // The body has its length, and the gateway answers an expectation itself.
        if matches!(*name, HOST | COOKIE | CONTENT_LENGTH | EXPECT | FORWARDED) {
            return false;
        }
        if *name == AUTHORIZATION {
            let is_free = self.credential.is_none() && !self.authorization_is_spent;
            return is_free && !has_key(value);
        }
        let name = name.as_str();
        // Servers of CGI's kind read `_` as `-`, so such a name could be any of these.
        name != "x-real-ip"
            && !name.starts_with("x-forwarded-")
            && !name.starts_with("wharf-")
            && !name.contains('_')
    }
}

/// Joins the cookies that are not the gateway's. HTTP/2 may have divided them.
fn passed_cookies(headers: &HeaderMap) -> Option<HeaderValue> {
    let values = headers.get_all(COOKIE).iter();
    let pairs = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b';'));
    let pairs = pairs.map(<[u8]>::trim_ascii);
    let passed: Vec<&[u8]> = pairs
        .filter(|pair| !pair.is_empty() && !cookie::is_of_gateway(pair))
        .collect();
    let mut value = HeaderValue::from_bytes(&passed.join(&b"; "[..])).ok()?;
    value.set_sensitive(true);
    (!passed.is_empty()).then_some(value)
}

/// Whether a credential is, or contains, an API key.
fn has_key(value: &HeaderValue) -> bool {
    let Ok(text) = value.to_str() else {
        return true;
    };
    let parts = text.split_ascii_whitespace();
    let decoded = parts.filter_map(|part| STANDARD.decode(part).ok());
    text.contains(KEY_PREFIX)
        || decoded
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .any(|text| text.contains(KEY_PREFIX))
}

#[cfg(test)]
mod tests {
    use super::ToPage;
    use http::{HeaderMap, HeaderName, HeaderValue};
    use wharf_domain::secret::SecretText;

    fn rewritten<'a>(
        headers: &[(&str, &str)],
        change: impl FnOnce(&mut ToPage<'a>),
    ) -> Vec<String> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            map.append(name, HeaderValue::from_str(value).unwrap());
        }
        let mut to_page = ToPage {
            host: "Demo.pages.example",
            scheme: "https",
            client: "192.0.2.7".parse().unwrap(),
            credential: None,
            authorization_is_spent: false,
            is_socket: false,
        };
        change(&mut to_page);
        let headers = to_page.rewrite(&map).unwrap();
        let mut lines: Vec<_> = headers
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        let added = [
            "host: Demo.pages.example",
            "x-forwarded-for: 192.0.2.7",
            "x-forwarded-host: Demo.pages.example",
            "x-forwarded-proto: https",
        ];
        for line in added {
            let at = lines.iter().position(|other| other == line).unwrap();
            lines.remove(at);
        }
        lines.sort();
        lines
    }

    #[test]
    fn a_page_gets_only_what_is_meant_for_it() {
        for (headers, passed) in [
            (
                &[("accept", "a"), ("accept", "b")][..],
                &["accept: a", "accept: b"][..],
            ),
            (
                &[
                    ("host", "other"),
                    ("content-length", "3"),
                    ("expect", "100-continue"),
                ],
                &[],
            ),
            (
                &[
                    ("connection", "keep-alive, X-One"),
                    ("x-one", "1"),
                    ("x-two", "2"),
                ],
                &["x-two: 2"],
            ),
            (
                &[("connection", "x-forwarded-for, host, authorization")],
                &[],
            ),
            (
                &[
                    ("te", "trailers"),
                    ("trailer", "x"),
                    ("transfer-encoding", "chunked"),
                ],
                &[],
            ),
            (
                &[
                    ("upgrade", "h2c"),
                    ("http2-settings", "AAMAAABk"),
                    ("connection", "upgrade"),
                ],
                &[],
            ),
            (
                &[
                    ("keep-alive", "1"),
                    ("proxy-connection", "a"),
                    ("proxy-authorization", "b"),
                ],
                &[],
            ),
            (
                &[
                    ("x-forwarded-for", "1.2.3.4"),
                    ("x-forwarded-for", "5.6.7.8"),
                ],
                &[],
            ),
            (
                &[
                    ("x-forwarded-proto", "a"),
                    ("x-forwarded-host", "b"),
                    ("x-forwarded-port", "1"),
                ],
                &[],
            ),
            (
                &[
                    ("forwarded", "for=a"),
                    ("x-real-ip", "1.2.3.4"),
                    ("x-forwarded_for", "a"),
                ],
                &[],
            ),
            (
                &[("wharf-user", "eve"), ("wharf-session", "x"), ("a_b", "c")],
                &[],
            ),
            (
                &[("origin", "https://x"), ("sec-fetch-site", "none")],
                &["origin: https://x", "sec-fetch-site: none"],
            ),
        ] {
            assert_eq!(rewritten(headers, |_| {}), passed, "{headers:?}");
        }
    }

    #[test]
    fn a_page_gets_no_cookie_of_the_gateway() {
        for (values, passed) in [
            (&["a=1; __Host-wharf-page=x; b=2"][..], Some("a=1; b=2")),
            (&["a=1", "b=2"], Some("a=1; b=2")),
            (
                &[
                    "__host-WHARF-page=x;__Host-wharf=y",
                    " __Host-wharf-enter=z",
                ],
                None,
            ),
            (&["__Host-other=x"], Some("__Host-other=x")),
            (&["=__Host-wharf-page=x; __Host-wharf-page"], None),
            (&["; ;"], None),
        ] {
            let headers: Vec<_> = values.iter().map(|value| ("cookie", *value)).collect();
            let passed: Vec<_> = passed
                .map(|passed| format!("cookie: {passed}"))
                .into_iter()
                .collect();
            assert_eq!(rewritten(&headers, |_| {}), passed, "{values:?}");
        }
    }

    #[test]
    fn the_credential_of_the_page_replaces_that_of_the_visitor() {
        let bearer = [("authorization", "Bearer of the visitor")];
        let (mine, passed) = (
            SecretText::new("token of the page"),
            "authorization: Bearer of the visitor",
        );
        assert_eq!(rewritten(&bearer, |_| {}), [passed]);
        let added = rewritten(&bearer, |to| to.credential = Some(&mine));
        assert_eq!(added, ["authorization: token of the page"]);
        assert!(rewritten(&bearer, |to| to.authorization_is_spent = true).is_empty());
        for key in [
            "Bearer wharf_0123_abc",
            "wharf_0123_abc",
            "Basic eDp3aGFyZl8wMTIz",
        ] {
            assert!(
                rewritten(&[("authorization", key)], |_| {}).is_empty(),
                "{key}"
            );
        }
    }

    #[test]
    fn an_upgrade_is_written_anew() {
        let received = [
            ("upgrade", "WebSocket"),
            ("connection", "Upgrade"),
            ("sec-websocket-version", "13"),
        ];
        let upgrade = [
            "connection: Upgrade",
            "sec-websocket-version: 13",
            "upgrade: websocket",
        ];
        assert_eq!(rewritten(&received, |to| to.is_socket = true), upgrade);
    }
}

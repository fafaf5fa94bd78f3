//! The headers of a response on its way from a page.

use crate::cookie;
use crate::hop::end_to_end;
use crate::web_socket;
use http::header::{ALT_SVC, CONTENT_LENGTH, SERVER, SET_COOKIE, STRICT_TRANSPORT_SECURITY};
use http::{HeaderMap, HeaderName, HeaderValue};

const CLEAR_SITE_DATA: HeaderName = HeaderName::from_static("clear-site-data");
const X_ROBOTS_TAG: HeaderName = HeaderName::from_static("x-robots-tag");

/// A year. Names below a page's own would be two labels, which have no certificate.
const HSTS: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// The facts that decide about headers of a response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FromPage {
    pub(crate) is_https: bool,
    /// Whether everyone may see the page.
    pub(crate) is_public: bool,
    /// Whether the response has no body but may tell its length, as to HEAD.
    pub(crate) is_bare: bool,
    pub(crate) is_socket: bool,
}

impl FromPage {
    /// Returns the headers that the visitor gets.
    pub(crate) fn rewrite(self, received: &HeaderMap) -> HeaderMap {
        let mut headers = HeaderMap::with_capacity(received.len() + 2);
        for (name, value) in end_to_end(received) {
            match *name {
                // A body has a length of its own.
                CONTENT_LENGTH if !self.is_bare => {}
                ALT_SVC | SERVER | STRICT_TRANSPORT_SECURITY => {}
                SET_COOKIE => {
                    if let Some(value) = own_cookie(value) {
                        headers.append(SET_COOKIE, value);
                    }
                }
                // It would clear the cookies of neighbours too.
                _ if *name == CLEAR_SITE_DATA => {}
                _ => drop(headers.append(name.clone(), value.clone())),
            }
        }
        if self.is_https {
            headers.insert(STRICT_TRANSPORT_SECURITY, HSTS);
        }
        if self.is_public {
            headers.insert(X_ROBOTS_TAG, HeaderValue::from_static("noindex"));
        }
        if self.is_socket {
            web_socket::add_upgrade(&mut headers);
        }
        headers
    }
}

/// Returns a cookie that only this page gets; none if it has a name of the gateway's.
fn own_cookie(value: &HeaderValue) -> Option<HeaderValue> {
    let mut parts = value.as_bytes().split(|byte| *byte == b';');
    let pair = parts.next().unwrap_or_default().trim_ascii();
    if cookie::is_of_gateway(pair) {
        return None;
    }
    let name = |part: &[u8]| {
        let name = part.split(|byte| *byte == b'=').next().unwrap_or_default();
        name.trim_ascii().to_ascii_lowercase()
    };
    let parts = parts.map(<[u8]>::trim_ascii);
    let kept = parts.filter(|part| !matches!(&*name(part), b"domain" | b"secure" | b""));
    let parts: Vec<&[u8]> = std::iter::once(pair)
        .chain(kept)
        .chain([&b"Secure"[..]])
        .collect();
    HeaderValue::from_bytes(&parts.join(&b"; "[..])).ok()
}

#[cfg(test)]
mod tests {
    use super::FromPage;
    use http::{HeaderMap, HeaderName, HeaderValue};

    const PLAIN: FromPage = FromPage {
        is_https: false,
        is_public: false,
        is_bare: false,
        is_socket: false,
    };

    fn rewritten(headers: &[(&str, &str)], from_page: FromPage) -> Vec<String> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            map.append(name, HeaderValue::from_str(value).unwrap());
        }
        let headers = from_page.rewrite(&map);
        let lines = headers.iter();
        lines
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect()
    }

    #[test]
    fn a_cookie_stays_with_its_page() {
        for (cookie, passed) in [
            ("a=1", Some("a=1; Secure")),
            (
                "a=1; Path=/; HttpOnly",
                Some("a=1; Path=/; HttpOnly; Secure"),
            ),
            (
                "a=1; Domain=pages.example; Max-Age=5",
                Some("a=1; Max-Age=5; Secure"),
            ),
            ("a=1;domain = .pages.example;SECURE", Some("a=1; Secure")),
            ("a=1; Domain", Some("a=1; Secure")),
            (
                "a=\"x\"; SameSite=None;",
                Some("a=\"x\"; SameSite=None; Secure"),
            ),
            ("__Host-wharf-page=x; Path=/; Secure", None),
            (" __host-Wharf=x", None),
            ("=__Host-wharf-page=x", None),
            ("__Host-wharf-page", None),
            (
                "__Host-mine=x; Path=/",
                Some("__Host-mine=x; Path=/; Secure"),
            ),
        ] {
            let passed: Vec<_> = passed
                .map(|passed| format!("set-cookie: {passed}"))
                .into_iter()
                .collect();
            assert_eq!(
                rewritten(&[("set-cookie", cookie)], PLAIN),
                passed,
                "{cookie}"
            );
        }
    }

    #[test]
    fn a_page_speaks_for_itself_alone() {
        let received = [
            ("alt-svc", "h3=\":443\""),
            ("strict-transport-security", "max-age=1; includeSubDomains"),
            ("server", "x"),
            ("clear-site-data", "\"cookies\""),
            ("content-length", "7"),
            ("connection", "close, x-hop"),
            ("x-hop", "1"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("content-type", "text/html"),
        ];
        assert_eq!(rewritten(&received, PLAIN), ["content-type: text/html"]);
        let all = FromPage {
            is_https: true,
            is_public: true,
            is_bare: true,
            is_socket: true,
        };
        let mut lines = rewritten(&received, all);
        lines.sort();
        let expected = [
            "connection: Upgrade",
            "content-length: 7",
            "content-type: text/html",
            "strict-transport-security: max-age=31536000",
            "upgrade: websocket",
            "x-robots-tag: noindex",
        ];
        assert_eq!(lines, expected);
    }
}

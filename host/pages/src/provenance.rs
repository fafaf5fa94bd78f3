//! The provenance of a request: the page itself, a navigation of its visitor, or a page elsewhere. Pages below
//! one domain are one site to a browser, so cookies of `SameSite=Lax` come with the requests of neighbours.
//! Browsers write the headers, and no page can forge them.

use http::header::{ACCEPT, ORIGIN};
use http::{HeaderMap, HeaderName, Method};

const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const DESTINATION: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// A request, as far as its provenance goes.
pub(crate) struct Provenance<'a> {
    pub(crate) method: &'a Method,
    pub(crate) headers: &'a HeaderMap,
    /// Whether it opens a WebSocket.
    pub(crate) is_socket: bool,
}

impl Provenance<'_> {
    /// Whether the request comes from a page elsewhere, and is no navigation of the whole window.
    pub(crate) fn is_foreign(&self, own_origin: &str) -> bool {
        let (Ok(site), Ok(origin)) = (self.one(&SITE), self.one(&ORIGIN)) else {
            return true;
        };
        let from_here = matches!(site, None | Some("none" | "same-origin"));
        let from_origin = origin.is_none_or(|origin| origin == own_origin);
        !(from_here && from_origin || self.is_window())
    }

    /// Whether a cookie may count. A WebSocket or a change needs a header of provenance, which
    /// [`is_foreign`](Self::is_foreign) has checked; programs, which send none, use a password.
    pub(crate) fn may_use_cookie(&self) -> bool {
        let changes = self.is_socket || !matches!(*self.method, Method::GET | Method::HEAD);
        !changes || self.headers.contains_key(ORIGIN) || self.headers.contains_key(SITE)
    }

    /// Whether a person opens an address, so that the sign-in may be shown.
    pub(crate) fn is_navigation(&self) -> bool {
        let tells = self.headers.contains_key(MODE) || self.headers.contains_key(DESTINATION);
        self.is_window() || !tells && self.is_get() && self.accepts_html()
    }

    /// Whether the sender is a browser of today.
    pub(crate) fn is_browser(&self) -> bool {
        self.headers.contains_key(SITE)
    }

    /// Whether the sender shows HTML.
    pub(crate) fn accepts_html(&self) -> bool {
        let accepted = self
            .headers
            .get(ACCEPT)
            .and_then(|value| value.to_str().ok());
        accepted.is_some_and(|accepted| accepted.contains("text/html"))
    }

    fn is_window(&self) -> bool {
        let has = |name: HeaderName, value| self.one(&name) == Ok(Some(value));
        self.is_get() && has(MODE, "navigate") && has(DESTINATION, "document")
    }

    fn is_get(&self) -> bool {
        !self.is_socket && *self.method == Method::GET
    }

    /// The value of a header. Two values, and bytes that are no text, are an error.
    fn one(&self, name: &HeaderName) -> Result<Option<&str>, ()> {
        let mut values = self.headers.get_all(name).iter();
        match (values.next(), values.next()) {
            (None, _) => Ok(None),
            (Some(value), None) => value.to_str().map(Some).map_err(drop),
            _ => Err(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Provenance;
    use http::{HeaderMap, HeaderName, HeaderValue, Method};

    const OWN: &str = "https://demo.pages.example";

    /// The letters are `f` for foreign, `c` for a cookie that may count, and `n` for a navigation. A method
    /// `WS` is a GET that opens a WebSocket.
    fn judge(method: &str, headers: &[(&str, &str)]) -> String {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            map.append(name, HeaderValue::from_str(value).unwrap());
        }
        let is_socket = method == "WS";
        let method = if is_socket { "GET" } else { method };
        let method: Method = method.parse().unwrap();
        let request = Provenance {
            method: &method,
            headers: &map,
            is_socket,
        };
        let found = [
            (request.is_foreign(OWN), "f"),
            (request.may_use_cookie(), "c"),
            (request.is_navigation(), "n"),
        ];
        found
            .iter()
            .filter_map(|(is, letter)| is.then_some(*letter))
            .collect()
    }

    #[test]
    fn neighbours_are_refused_and_navigations_are_not() {
        const SITE: &str = "sec-fetch-site";
        const MODE: &str = "sec-fetch-mode";
        const DEST: &str = "sec-fetch-dest";
        let window = [(MODE, "navigate"), (DEST, "document")];
        let frame = [(MODE, "navigate"), (DEST, "iframe")];
        let from = |site, rest: [(&'static str, &'static str); 2]| [(SITE, site), rest[0], rest[1]];
        for (method, headers, letters) in [
            ("GET", &[][..], "c"),
            ("GET", &[("accept", "text/html,*/*")], "cn"),
            ("GET", &[("accept", "*/*")], "c"),
            ("POST", &[("accept", "text/html")], ""),
            ("WS", &[("accept", "text/html")], ""),
            // The page itself.
            ("GET", &[(SITE, "same-origin")], "c"),
            ("POST", &[(SITE, "same-origin"), ("origin", OWN)], "c"),
            ("POST", &[("origin", OWN)], "c"),
            ("WS", &[(SITE, "same-origin"), ("origin", OWN)], "c"),
            ("WS", &[("origin", OWN)], "c"),
            ("GET", &from("same-origin", frame), "c"),
            // An address that a person opens, here or in a link elsewhere.
            ("GET", &from("none", window), "cn"),
            ("GET", &from("same-site", window), "cn"),
            ("GET", &from("cross-site", window), "cn"),
            // A neighbour or a stranger.
            ("GET", &[(SITE, "same-site")], "fc"),
            ("GET", &[(SITE, "cross-site")], "fc"),
            ("GET", &[(SITE, "anything")], "fc"),
            ("GET", &from("same-site", frame), "fc"),
            ("GET", &from("cross-site", frame), "fc"),
            ("HEAD", &from("same-site", window), "fc"),
            ("POST", &from("same-site", window), "fc"),
            ("OPTIONS", &[(SITE, "same-site")], "fc"),
            ("WS", &from("same-site", window), "fc"),
            ("WS", &[(SITE, "same-site"), ("origin", OWN)], "fc"),
            ("WS", &[("origin", "https://evil.pages.example")], "fc"),
            ("WS", &[(SITE, "same-origin"), ("origin", "null")], "fc"),
            ("POST", &[("origin", "https://evil.pages.example")], "fc"),
            ("POST", &[("origin", "null")], "fc"),
            ("POST", &[("origin", "http://demo.pages.example")], "fc"),
            (
                "POST",
                &[("origin", "https://demo.pages.example:8443")],
                "fc",
            ),
            (
                "DELETE",
                &[(SITE, "same-origin"), ("origin", "https://evil.example")],
                "fc",
            ),
            // Two values.
            ("GET", &[(SITE, "none"), (SITE, "same-site")], "fc"),
            ("POST", &[("origin", OWN), ("origin", OWN)], "fc"),
        ] {
            assert_eq!(judge(method, headers), letters, "{method} {headers:?}");
        }
    }
}

//! The way in: to the console's sign-in, and back with a ticket for which the visitor gets a cookie.

use crate::address::Addresses;
use crate::answer::Answer;
use crate::cookie::{self, Cookies};
use crate::directory::Visitor;
use crate::ticket::{PageInBrowser, Tickets, random_text};
use http::{HeaderMap, Uri};
use std::time::{Instant, SystemTime};
use wharf_domain::secret::SecretText;

/// The path of the gateway's own answers on each host, which no page gets.
pub(crate) const OWN: &str = "/.wharf/";
const ENTER: &str = "/.wharf/enter";

/// The time of a sign-in in seconds, which may take a second factor.
const SIGN_IN: u64 = 600;

/// The time of a visitor's cookie in seconds: 30 days. The session or the password ends earlier by itself.
const VISIT: u64 = 30 * 24 * 3600;

/// The longest address within a page to which a visitor returns.
const MAX_RETURN: usize = 2_000;

/// The length of a state.
const STATE: usize = 32;

/// Makes cookies and tickets for the visitors that Wharf lets in.
pub(crate) struct Entrance {
    pub(crate) cookies: Cookies,
    pub(crate) tickets: Tickets,
    /// The address of the console's sign-in for pages.
    pub(crate) sign_in: String,
}

impl Entrance {
    /// Sends a browser to the sign-in. Windows that open at once share their state.
    pub(crate) fn ask(&self, label: &str, uri: &Uri, headers: &HeaderMap) -> Option<Answer> {
        let state = match cookie::named(headers, cookie::ENTER).find(|state| is_state(state)) {
            Some(state) => state.to_owned(),
            None => random_text()?,
        };
        let to = uri.path_and_query().map_or("/", |to| to.as_str());
        let query = form_urlencoded::Serializer::new(String::new())
            .append_pair("host", label)
            .append_pair("state", &state)
            .append_pair("to", return_path(to))
            .finish();
        Some(Answer::Redirect {
            to: format!("{}?{query}", self.sign_in),
            cookies: vec![cookie::set(cookie::ENTER, &state, SIGN_IN)?],
        })
    }

    /// Returns the address that spends a ticket and goes on within the page.
    pub(crate) fn url(
        &self,
        addresses: &Addresses,
        label: &str,
        ticket: &SecretText,
        to: &str,
    ) -> SecretText {
        let query = form_urlencoded::Serializer::new(String::new())
            .append_pair("ticket", ticket.expose())
            .append_pair("to", return_path(to))
            .finish();
        SecretText::new(format!("{}{ENTER}?{query}", addresses.origin(label)))
    }

    /// Answers a request for one of the gateway's own paths.
    pub(crate) fn enter(&self, label: &str, uri: &Uri, headers: &HeaderMap) -> Answer {
        if uri.path() != ENTER {
            return Answer::NotFound;
        }
        let query = uri.query().unwrap_or_default().as_bytes();
        let value = |name| {
            let mut pairs = form_urlencoded::parse(query);
            pairs.find_map(|(found, value)| (found == name).then(|| value.into_owned()))
        };
        let ticket = value("ticket").unwrap_or_default();
        let to = value("to").unwrap_or_default();
        let state = cookie::named(headers, cookie::ENTER)
            .next()
            .unwrap_or_default();
        let visitor = self
            .tickets
            .spend(&ticket, PageInBrowser { label, state }, Instant::now());
        let cookies = visitor.and_then(|visitor| {
            let ends_at = now().saturating_add(VISIT);
            let value = self.cookies.seal(label, &visitor, ends_at)?;
            let given = cookie::set(cookie::PAGE, &value, VISIT)?;
            Some(vec![given, cookie::set(cookie::ENTER, "", 0)?])
        });
        match cookies {
            Some(cookies) => Answer::Redirect {
                to: return_path(&to).to_owned(),
                cookies,
            },
            None => Answer::Ticket,
        }
    }

    /// Returns the visitors that a request has cookies of.
    pub(crate) fn visitors(
        &self,
        label: &str,
        headers: &HeaderMap,
    ) -> impl Iterator<Item = Visitor> {
        let now = now();
        let values = cookie::named(headers, cookie::PAGE);
        values.filter_map(move |value| self.cookies.open(label, value, now))
    }
}

fn now() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(u64::MAX, |now| now.as_secs())
}

fn is_state(state: &str) -> bool {
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    state.len() == STATE && state.bytes().all(is_base64)
}

/// Returns a path on the host of the page, to which a visitor may be sent. It is the front path unless the
/// given one is a path of that host. A browser takes `\` for `/`, and ignores tabs and ends of lines.
fn return_path(to: &str) -> &str {
    let is_path = to.starts_with('/') && !matches!(to.as_bytes().get(1), Some(b'/' | b'\\'));
    let is_plain = to.bytes().all(|byte| byte.is_ascii_graphic());
    let is_own = to.starts_with(OWN);
    let right = is_path && is_plain && !is_own && to.len() <= MAX_RETURN;
    if right { to } else { "/" }
}

#[cfg(test)]
mod tests {
    use super::{Addresses, Answer, Cookies, Entrance, Tickets, Visitor, return_path};
    use crate::ticket::PageInBrowser;
    use http::header::{COOKIE, HeaderMap, HeaderValue};
    use std::time::Instant;

    #[test]
    fn a_visitor_returns_to_a_path_of_the_page_only() {
        for path in ["/", "/lab?x=1&y=%20", "/a//b", "/@x", "/?//x"] {
            assert_eq!(return_path(path), path);
        }
        for other in [
            "",
            "lab",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "/\tevil",
            "/\r\nx: y",
            "/\n/evil.example",
            "/.wharf/enter?ticket=x",
            "/ü",
            "javascript:alert(1)",
            " /",
        ] {
            assert_eq!(return_path(other), "/", "{other:?}");
        }
        assert_eq!(return_path(&format!("/{}", "a".repeat(2_000))), "/");
    }

    #[test]
    fn a_browser_enters_with_its_own_state_once() {
        let entrance = Entrance {
            cookies: Cookies::new(Box::new(|| [1; 32])),
            tickets: Tickets::default(),
            sign_in: "https://wharf.example/auth/page/".to_owned(),
        };
        let addresses = Addresses {
            is_https: true,
            domain: "pages.example".to_owned(),
            port: 443,
        };
        let sent = entrance.ask("demo", &"/lab?x=1".parse().unwrap(), &HeaderMap::new());
        let Some(Answer::Redirect { to, cookies }) = sent else {
            panic!("{sent:?}");
        };
        let (to, state) = to.split_once("&state=").unwrap();
        assert_eq!(to, "https://wharf.example/auth/page/?host=demo");
        let (state, to) = state.split_once('&').unwrap();
        assert_eq!(to, "to=%2Flab%3Fx%3D1");
        let given = format!("__Host-wharf-enter={state}; Path=/; Max-Age=600; ");
        assert!(cookies[0].to_str().unwrap().starts_with(&given));

        let mut browser = HeaderMap::new();
        let own = HeaderValue::try_from(format!("__Host-wharf-enter={state}")).unwrap();
        browser.insert(COOKIE, own);
        // A second window has the state of the first.
        let again = entrance.ask("demo", &"/".parse().unwrap(), &browser);
        assert!(matches!(again, Some(Answer::Redirect { to, .. }) if to.contains(state)));

        let visitor = Visitor::Session("7".to_owned());
        let issued = entrance.tickets.issue(
            visitor.clone(),
            PageInBrowser {
                label: "demo",
                state,
            },
            Instant::now(),
        );
        let url = entrance.url(&addresses, "demo", &issued.unwrap(), "/lab?x=1");
        let path = url
            .expose()
            .strip_prefix("https://demo.pages.example")
            .unwrap();
        let entered = entrance.enter("demo", &path.parse().unwrap(), &browser);
        let Answer::Redirect { to, cookies } = entered else {
            panic!("{entered:?}");
        };
        assert_eq!((to.as_str(), cookies.len()), ("/lab?x=1", 2));
        let cookie = cookies[0].to_str().unwrap().split(';').next().unwrap();
        browser.insert(COOKIE, HeaderValue::from_str(cookie).unwrap());
        assert!(entrance.visitors("demo", &browser).eq([visitor]));
        assert_eq!(entrance.visitors("other", &browser).count(), 0);
        assert_eq!(
            entrance.enter("demo", &path.parse().unwrap(), &browser),
            Answer::Ticket
        );
    }
}

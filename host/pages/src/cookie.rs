//! The cookie of a visitor: a session or a password, for one label, until a time. A MAC proves it, so it needs
//! no row and outlives a restart. The right itself is asked for at each request.

use crate::directory::Visitor;
use crate::gateway::CookieKey;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use http::HeaderMap;
use http::HeaderValue;
use http::header::COOKIE;
use sha2::Sha256;

/// The cookie of a visitor.
pub(crate) const PAGE: &str = "__Host-wharf-page";

/// The cookie that ties a ticket to the browser that asked for it.
pub(crate) const ENTER: &str = "__Host-wharf-enter";

/// The beginning of the names that pages neither get nor set.
const PREFIX: &[u8] = b"__Host-wharf";

/// The largest number of cookies that an answer removes. Browsers keep fewer for a domain.
const MAX_REMOVED: usize = 256;

const VERSION: u8 = 1;

/// Separates this MAC from other uses of its key.
const PURPOSE: &[u8] = b"cookie of a page";

/// Whether a pair of name and value has a name of the gateway's. Browsers may ignore the case, and a pair
/// without a name has its value in the place of the name.
pub(crate) fn is_of_gateway(pair: &[u8]) -> bool {
    let pair = pair.trim_ascii();
    let pair = pair.strip_prefix(b"=").unwrap_or(pair).trim_ascii_start();
    let start = pair.get(..PREFIX.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(PREFIX))
}

/// Returns the values of the cookies with a name.
pub(crate) fn named<'a>(headers: &'a HeaderMap, name: &str) -> impl Iterator<Item = &'a str> {
    let values = headers.get_all(COOKIE).iter();
    let values = values.filter_map(|value| value.to_str().ok());
    let pairs = values.flat_map(|value| value.split(';'));
    pairs.filter_map(move |pair| pair.trim().strip_prefix(name)?.strip_prefix('='))
}

/// Returns the header that sets a cookie for some seconds, or removes it.
pub(crate) fn set(name: &str, value: &str, seconds: u64) -> Option<HeaderValue> {
    let text = format!("{name}={value}; Path=/; Max-Age={seconds}; Secure; HttpOnly; SameSite=Lax");
    let mut header = HeaderValue::try_from(text).ok()?;
    header.set_sensitive(true);
    Some(header)
}

/// Returns the headers that remove the cookies of a request which a neighbour can have set, for a whole domain.
pub(crate) fn removals(headers: &HeaderMap, domain: &str) -> Vec<HeaderValue> {
    let values = headers.get_all(COOKIE).iter();
    let pairs = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b';'));
    let names = pairs.filter_map(|pair| {
        let name = pair.split(|byte| *byte == b'=').next()?.trim_ascii();
        let name = std::str::from_utf8(name).ok()?;
        (!name.starts_with("__Host-")).then_some(name)
    });
    let removals = names.take(MAX_REMOVED).filter_map(|name| {
        HeaderValue::try_from(format!("{name}=; Domain={domain}; Path=/; Max-Age=0")).ok()
    });
    removals.collect()
}

/// Makes and verifies cookies.
pub(crate) struct Cookies {
    key: CookieKey,
}

impl Cookies {
    pub(crate) fn new(key: CookieKey) -> Self {
        Self { key }
    }

    /// Returns the value of a cookie; none for a visitor without one.
    pub(crate) fn seal(&self, label: &str, visitor: &Visitor, ends_at: u64) -> Option<String> {
        let (kind, text) = match visitor {
            Visitor::Session(id) => (0, id),
            Visitor::Password(digest) => (1, digest),
            Visitor::Anyone => return None,
        };
        let mut content = vec![VERSION, kind];
        content.extend(ends_at.to_be_bytes());
        content.extend(text.as_bytes());
        let mac = self.mac(label, &content)?.finalize().into_bytes();
        let [content, mac] = [&content[..], &mac[..]].map(|part| URL_SAFE_NO_PAD.encode(part));
        Some(format!("{content}.{mac}"))
    }

    /// Returns the visitor with a cookie for a label; none if it is not genuine or has ended.
    pub(crate) fn open(&self, label: &str, value: &str, now: u64) -> Option<Visitor> {
        let (content, mac) = value.split_once('.')?;
        let content = URL_SAFE_NO_PAD.decode(content).ok()?;
        let mac = URL_SAFE_NO_PAD.decode(mac).ok()?;
        self.mac(label, &content)?.verify_slice(&mac).ok()?;
        let (head, content) = content.split_first_chunk::<2>()?;
        let (ends_at, text) = content.split_first_chunk::<8>()?;
        let text = str::from_utf8(text).ok()?.to_owned();
        if now >= u64::from_be_bytes(*ends_at) {
            return None;
        }
        match head {
            [VERSION, 0] => Some(Visitor::Session(text)),
            [VERSION, 1] => Some(Visitor::Password(text)),
            _ => None,
        }
    }

    fn mac(&self, label: &str, content: &[u8]) -> Option<Hmac<Sha256>> {
        let mac = Hmac::<Sha256>::new_from_slice(&(self.key)()).ok()?;
        let label = label.as_bytes();
        let length = u64::try_from(label.len()).ok()?.to_be_bytes();
        let mac = mac.chain_update(PURPOSE).chain_update(length);
        Some(mac.chain_update(label).chain_update(content))
    }
}

#[cfg(test)]
mod tests {
    use super::{Cookies, named, set};
    use crate::directory::Visitor;
    use http::HeaderMap;
    use http::header::{COOKIE, HeaderValue};

    #[test]
    fn a_cookie_is_for_one_label_and_time_and_cannot_be_made_up() {
        let cookies = Cookies::new(Box::new(|| [7; 32]));
        for visitor in ["7", ""]
            .map(str::to_owned)
            .into_iter()
            .flat_map(|text| [Visitor::Session(text.clone()), Visitor::Password(text)])
        {
            let value = cookies.seal("demo", &visitor, 100).unwrap();
            assert_eq!(cookies.open("demo", &value, 99), Some(visitor));
            assert_eq!(cookies.open("demo", &value, 100), None);
            assert_eq!(cookies.open("dem", &value, 99), None);
            assert_eq!(cookies.open("demo2", &value, 99), None);
            assert_eq!(
                Cookies::new(Box::new(|| [8; 32])).open("demo", &value, 99),
                None
            );
            for at in 0..value.len() {
                let mut other = value.clone().into_bytes();
                other[at] = if other[at] == b'A' { b'B' } else { b'A' };
                let other = String::from_utf8(other).unwrap();
                assert_eq!(cookies.open("demo", &other, 99), None, "{at}");
                assert_eq!(cookies.open("demo", &value[..at], 99), None, "{at}");
            }
        }
        assert_eq!(cookies.seal("demo", &Visitor::Anyone, 100), None);
        assert_eq!(cookies.open("demo", ".", 0), None);
    }

    #[test]
    fn cookies_are_read_by_their_whole_name() {
        let mut headers = HeaderMap::new();
        for value in ["a=b; __Host-x=1;__Host-xy=2", "__Host-x=3=4; x=5"] {
            headers.append(COOKIE, HeaderValue::from_static(value));
        }
        assert!(named(&headers, "__Host-x").eq(["1", "3=4"]));
        let header = set("__Host-x", "1", 5).unwrap();
        let expected = "__Host-x=1; Path=/; Max-Age=5; Secure; HttpOnly; SameSite=Lax";
        assert!(header == expected && header.is_sensitive());
    }
}

//! Who calls.

use http::HeaderMap;
use http::header::AUTHORIZATION;

const SCHEME: &str = "Bearer";

/// The key of `Authorization: Bearer KEY`; nothing if the header is missing, given twice, or of
/// another form.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = str::from_utf8(values.next()?.as_bytes()).ok()?;
    if values.next().is_some() {
        return None;
    }
    let (scheme, key) = value.split_at_checked(SCHEME.len())?;
    let key = key.strip_prefix(' ')?.trim();
    // What else a key is made of, its lookup tells.
    let one_token = !key.is_empty() && !key.contains(' ');
    (scheme.eq_ignore_ascii_case(SCHEME) && one_token).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::bearer;
    use http::{HeaderMap, HeaderValue, header::AUTHORIZATION};

    fn headers(values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[test]
    fn one_bearer_key() {
        for good in ["Bearer abc", "bearer abc", "BEARER   abc"] {
            assert_eq!(bearer(&headers(&[good])), Some("abc"), "{good}");
        }
        for bad in [
            "",
            "Bearer",
            "Bearer ",
            "Basic abc",
            "abc",
            "Bearer a b",
            "Bearer\tabc",
        ] {
            assert_eq!(bearer(&headers(&[bad])), None, "{bad}");
        }
        assert_eq!(bearer(&headers(&[])), None);
        assert_eq!(bearer(&headers(&["Bearer abc", "Bearer abc"])), None);
    }
}

//! Who calls.

use http::HeaderMap;
use http::header::AUTHORIZATION;

/// The key of `Authorization: Bearer KEY`; nothing if the header is missing, given twice, or of
/// another form.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next()?.to_str().ok()?;
    if values.next().is_some() {
        return None;
    }
    let (scheme, key) = value.split_once(' ')?;
    let key = key.trim();
    let one_token = !key.is_empty() && key.bytes().all(|b| b.is_ascii_graphic());
    (scheme.eq_ignore_ascii_case("bearer") && one_token).then_some(key)
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

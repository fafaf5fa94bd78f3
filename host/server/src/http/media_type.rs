//! The declared media type of a request's body.

use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};

/// Whether the body is declared, once, as JSON without a content coding.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    let essence = types
        .next()
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next())
        .map(str::trim);
    let coded = headers
        .get_all(CONTENT_ENCODING)
        .iter()
        .any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"));
    essence.is_some_and(|e| e.eq_ignore_ascii_case("application/json"))
        && types.next().is_none()
        && !coded
}

#[cfg(test)]
mod tests {
    use super::is_json;
    use http::{HeaderMap, HeaderName, HeaderValue};

    fn json(pairs: &[(&str, &str)]) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            let name: HeaderName = name.parse().unwrap();
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        is_json(&headers)
    }

    #[test]
    fn json_with_or_without_parameters() {
        assert!(json(&[("content-type", "application/json")]));
        assert!(json(&[(
            "content-type",
            "Application/JSON ; charset=utf-8"
        )]));
        assert!(json(&[
            ("content-type", "application/json"),
            ("content-encoding", "identity")
        ]));
        assert!(!json(&[]));
        assert!(!json(&[("content-type", "text/json")]));
        assert!(!json(&[("content-type", "application/json-patch+json")]));
        assert!(!json(&[
            ("content-type", "application/json"),
            ("content-type", "application/json")
        ]));
        assert!(!json(&[
            ("content-type", "application/json"),
            ("content-encoding", "gzip")
        ]));
    }
}

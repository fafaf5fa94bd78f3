//! The path and query of a request, in one unambiguous form.

/// Longest path and query, bytes.
const MAX_TARGET: usize = 4096;

/// Whether a part of a path may have this character, which needs no decoding.
pub fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~:@".contains(&byte)
}

/// Refuses a target that two readers could take for different ones. The path's parts are plain, and none is
/// empty, `.` or `..`. The query's keys are plain, occur once, and have printable values.
pub fn check(text: &str) -> Result<(), String> {
    if text.len() > MAX_TARGET {
        return Err("the path is too long".to_owned());
    }
    let (path, query) = text
        .split_once('?')
        .map_or((text, None), |(path, query)| (path, Some(query)));
    let Some(path) = path.strip_prefix('/') else {
        return Err("the path does not begin with /".to_owned());
    };
    for segment in path.split('/') {
        let is_dots = segment.bytes().all(|b| b == b'.');
        if is_dots || !segment.bytes().all(is_plain) {
            return Err(format!("the path part {segment:?}"));
        }
    }
    let mut keys = Vec::new();
    for pair in query.into_iter().flat_map(|query| query.split('&')) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let is_key = |b: u8| b.is_ascii_alphanumeric() || b"-_".contains(&b);
        if key.is_empty() || !key.bytes().all(is_key) || keys.contains(&key) {
            return Err(format!("the query key {key:?}"));
        }
        if !is_printable(value) {
            return Err(format!("the value of query key {key:?}"));
        }
        keys.push(key);
    }
    Ok(())
}

/// Whether a query value is printable text in well-formed percent-encoding.
fn is_printable(text: &str) -> bool {
    let decoded = decode(text).and_then(|bytes| String::from_utf8(bytes).ok());
    decoded.is_some_and(|text| !text.chars().any(char::is_control))
}

fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => {
                let high = char::from(bytes.next()?).to_digit(16)?;
                let low = char::from(bytes.next()?).to_digit(16)?;
                u8::try_from(high * 16 + low).ok()?
            }
            b';' | b'#' | b'\\' => return None,
            plain if plain.is_ascii_graphic() => plain,
            _ => return None,
        });
    }
    Some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_targets_pass() {
        for text in [
            "/v1.41/images/localhost/wharf/base:1/json?a=%7B%22x%22%3A1%7D&b",
            "/a?path=/",
            "/_ping",
        ] {
            assert_eq!(check(text), Ok(()), "{text:?}");
        }
    }

    #[test]
    fn ambiguous_targets_are_refused() {
        for text in [
            "",
            "info",
            "/",
            "//info",
            "/info/",
            "/a//b",
            "/a/../b",
            "/..",
            "/a/.",
            "/...",
            "/a%2fb",
            "/a%2Fb",
            "/%2e%2e/b",
            "/a%00",
            "/a b",
            "/a\tb",
            "/a\r\nHost: x",
            "/ä",
            "/a\\b",
            "/a;b",
            "/a#b",
            "/a*",
            "http://other/info",
            "unix:///x",
            "/a?x=1&x=2",
            "/a?=1",
            "/a?x=%zz",
            "/a?x=%0a",
            "/a?x=1;y=2",
            "/a?x=%ff",
            "/a?x=\u{7f}",
            "/a?",
            "/a?x y=1",
            "/a?x=1#y",
            "/a?%78=1",
        ] {
            assert!(check(text).is_err(), "{text:?}");
        }
        assert!(check(&format!("/{}", "a".repeat(5000))).is_err());
    }
}

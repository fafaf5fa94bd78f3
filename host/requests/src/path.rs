//! The path of a request, in one unambiguous form.

/// Longest path and query, bytes.
const MAX_TARGET: usize = 4096;

/// Whether a part of a path may have this character, which needs no decoding.
pub fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~:@".contains(&byte)
}

/// Whether the key of a query is plain.
pub fn is_key(key: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-_".contains(&b);
    !key.is_empty() && key.bytes().all(is_plain)
}

/// Refuses a target whose path two readers could take for different ones: its parts are plain, and none is
/// empty, `.` or `..`.
pub fn check(target: &str) -> Result<(), String> {
    if target.len() > MAX_TARGET {
        return Err("the path is too long".to_owned());
    }
    let (path, _) = target.split_once('?').unwrap_or((target, ""));
    let Some(path) = path.strip_prefix('/') else {
        return Err("the path does not begin with /".to_owned());
    };
    for segment in path.split('/') {
        let is_dots = segment.bytes().all(|b| b == b'.');
        if is_dots || !segment.bytes().all(is_plain) {
            return Err(format!(
                "the path part {segment:?}; one has letters, digits and -._~:@, and is not only dots"
            ));
        }
    }
    Ok(())
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
        ] {
            assert!(check(text).is_err(), "{text:?}");
        }
        assert!(check(&format!("/{}", "a".repeat(5000))).is_err());
    }
}

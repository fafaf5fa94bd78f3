//! The path and query of a request, in one unambiguous form.

use super::Refusal;

/// Longest path and query, bytes.
const MAX_TARGET: usize = 4096;

/// A request target whose path needs no decoding.
#[derive(Debug, PartialEq, Eq)]
pub struct RequestTarget<'a> {
    /// The path's segments, of plain characters; none is empty, `.` or `..`.
    pub segments: Vec<&'a str>,
    /// Keys with decoded values; each key occurs once.
    pub query: Vec<(&'a str, String)>,
}

impl<'a> RequestTarget<'a> {
    /// Parses a target, or refuses it.
    pub fn parse(text: &'a str) -> Result<Self, Refusal> {
        if text.len() > MAX_TARGET {
            return Err(Refusal::new("the path is too long"));
        }
        let (path, query) = text
            .split_once('?')
            .map_or((text, None), |(path, query)| (path, Some(query)));
        let Some(path) = path.strip_prefix('/') else {
            return Err(Refusal::new("the path does not begin with /"));
        };
        let segments: Vec<_> = path.split('/').collect();
        for segment in &segments {
            let plain = segment
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-._~:@".contains(&b));
            if segment.is_empty() || !plain || segment.bytes().all(|b| b == b'.') {
                return Err(Refusal::new(format!("the path part {segment:?}")));
            }
        }
        let mut pairs: Vec<(&str, String)> = Vec::new();
        for pair in query.into_iter().flat_map(|query| query.split('&')) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_".contains(&b);
            let known = !key.is_empty() && key.bytes().all(plain);
            if !known || pairs.iter().any(|(other, _)| *other == key) {
                return Err(Refusal::new(format!("the query key {key:?}")));
            }
            let value = decode(value)
                .ok_or_else(|| Refusal::new(format!("the value of query key {key:?}")))?;
            pairs.push((key, value));
        }
        Ok(Self {
            segments,
            query: pairs,
        })
    }

    /// Refuses unlisted query keys.
    pub fn only(&self, keys: &[&str]) -> Result<(), Refusal> {
        match self.query.iter().find(|(key, _)| !keys.contains(key)) {
            Some((key, _)) => Err(Refusal::new(format!("the query key {key:?}"))),
            None => Ok(()),
        }
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.query
            .iter()
            .find(|(name, _)| *name == key)
            .map(|(_, value)| value.as_str())
    }
}

/// Decodes a query value: printable text in well-formed percent-encoding.
fn decode(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => {
                let high = char::from(bytes.next()?).to_digit(16)?;
                let low = char::from(bytes.next()?).to_digit(16)?;
                u8::try_from(high * 16 + low).ok()?
            }
            b'+' => b' ',
            b';' | b'#' | b'\\' => return None,
            plain if plain.is_ascii_graphic() => plain,
            _ => return None,
        });
    }
    String::from_utf8(decoded)
        .ok()
        .filter(|text| !text.chars().any(char::is_control))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_targets_pass() {
        let target =
            RequestTarget::parse("/v1.41/images/localhost/wharf/base:1/json?a=%7B%22x%22%3A1%7D&b")
                .unwrap();
        assert_eq!(
            target.segments,
            ["v1.41", "images", "localhost", "wharf", "base:1", "json"]
        );
        assert_eq!(
            target.query,
            [("a", r#"{"x":1}"#.to_owned()), ("b", String::new())]
        );
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
            assert!(RequestTarget::parse(text).is_err(), "{text:?}");
        }
        assert!(RequestTarget::parse(&format!("/{}", "a".repeat(5000))).is_err());
    }
}

//! Paths of an engine's interface, with percent-encoding.

use std::fmt::{self, Write as _};

/// A path and query whose parts are encoded one by one.
///
/// ```
/// use wharf_guest::Path;
///
/// let path = Path::new("/containers").segment("a b").segment("json").query("size", "true");
/// assert_eq!(path.to_string(), "/containers/a%20b/json?size=true");
/// ```
#[derive(Debug, Clone)]
pub struct Path {
    text: String,
    has_query: bool,
}

impl Path {
    /// Creates a path from a fixed prefix that needs no encoding, such as `/containers`.
    #[must_use]
    pub fn new(prefix: &str) -> Self {
        Self {
            text: prefix.to_owned(),
            has_query: false,
        }
    }

    /// Adds one segment. A slash in `segment` is encoded and does not start another segment.
    #[must_use]
    pub fn segment(mut self, segment: &str) -> Self {
        self.text.push('/');
        encode(&mut self.text, segment);
        self
    }

    /// Adds one query parameter. Add all segments before the first parameter.
    #[must_use]
    pub fn query(mut self, key: &str, value: &str) -> Self {
        self.text.push(if self.has_query { '&' } else { '?' });
        self.has_query = true;
        encode(&mut self.text, key);
        self.text.push('=');
        encode(&mut self.text, value);
        self
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Appends `text`, with all bytes encoded but the unreserved characters of RFC 3986.
fn encode(out: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Path;

    #[test]
    fn special_characters_stay_in_their_segment() {
        let path = Path::new("/images").segment("../x/y?z=1#f").to_string();
        assert_eq!(path, "/images/..%2Fx%2Fy%3Fz%3D1%23f");
    }

    #[test]
    fn parameters_are_separated_and_encoded() {
        let path = Path::new("/l")
            .query("all", "true")
            .query("filters", r#"{"label":["a=b"]}"#);
        assert_eq!(
            path.to_string(),
            "/l?all=true&filters=%7B%22label%22%3A%5B%22a%3Db%22%5D%7D"
        );
    }

    #[test]
    fn non_ascii_is_encoded_by_bytes() {
        assert_eq!(Path::new("").segment("é").to_string(), "/%C3%A9");
    }
}

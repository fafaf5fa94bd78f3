//! The entity tags of `If-Match` and `If-None-Match`, and their comparison. The types of the crate `headers` drop an
//! invalid tag, which is a 400 here.

use http::{HeaderMap, HeaderName};

/// The entity tags that a header names.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Tags {
    /// `*`: any representation.
    Any,
    /// Tags without their quotes; whether they are weak, and their text.
    Some(Vec<(bool, String)>),
}

impl Tags {
    /// The strong tags; none for `*`.
    pub(super) fn strong(self) -> Option<Vec<String>> {
        match self {
            Self::Any => None,
            Self::Some(tags) => {
                let strong = tags.into_iter().filter(|(weak, _)| !weak);
                Some(strong.map(|(_, tag)| tag).collect())
            }
        }
    }

    fn has_strong(&self, wanted: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Some(tags) => tags.iter().any(|(weak, tag)| !weak && tag == wanted),
        }
    }

    fn has(&self, wanted: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Some(tags) => tags.iter().any(|(_, tag)| tag == wanted),
        }
    }
}

/// The conditions of a `GET`.
pub(super) struct Conditions {
    pub(super) if_match: Option<Tags>,
    pub(super) if_none_match: Option<Tags>,
}

/// The decision of a conditional `GET`.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// The response has its body.
    Send,
    /// The client has this representation.
    NotModified,
    /// The client asked for another representation only.
    Failed,
}

impl Conditions {
    /// Decides for a representation with this tag. RFC 9110 compares `If-Match` strongly and
    /// `If-None-Match` weakly, in this order.
    pub(super) fn decide(&self, tag: &str) -> Decision {
        if self.if_match.as_ref().is_some_and(|t| !t.has_strong(tag)) {
            Decision::Failed
        } else if self.if_none_match.as_ref().is_some_and(|t| t.has(tag)) {
            Decision::NotModified
        } else {
            Decision::Send
        }
    }
}

/// A header that is neither `*` nor a list of entity tags.
#[derive(Debug)]
pub(super) struct Malformed;

/// Reads a header, if it is there.
pub(super) fn read(headers: &HeaderMap, name: &HeaderName) -> Result<Option<Tags>, Malformed> {
    let mut lines = headers.get_all(name).iter().peekable();
    if lines.peek().is_none() {
        return Ok(None);
    }
    let mut tags = Vec::new();
    for line in lines {
        let line = line.to_str().map_err(|_| Malformed)?.trim();
        if line == "*" && headers.get_all(name).iter().count() == 1 {
            return Ok(Some(Tags::Any));
        }
        parse(line, &mut tags).ok_or(Malformed)?;
    }
    // RFC 9110 allows an empty list, which matches nothing.
    Ok(Some(Tags::Some(tags)))
}

/// Reads `"tag", W/"tag"`. A tag may have commas, but no quotes.
fn parse(line: &str, tags: &mut Vec<(bool, String)>) -> Option<()> {
    let mut rest = line;
    loop {
        // RFC 9110 allows empty elements of a list.
        rest = rest.trim_start_matches([' ', '\t', ',']);
        if rest.is_empty() {
            return Some(());
        }
        let weak = rest.strip_prefix("W/");
        let (tag, after) = weak.unwrap_or(rest).strip_prefix('"')?.split_once('"')?;
        if tag.contains([' ', '\t']) || !after.is_empty() && !after.starts_with([' ', '\t', ',']) {
            return None;
        }
        tags.push((weak.is_some(), tag.to_owned()));
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::{Conditions, Decision, Tags};
    use http::{HeaderMap, HeaderValue, header::IF_MATCH};

    fn read(lines: &[&str]) -> Option<Tags> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(IF_MATCH, HeaderValue::from_str(line).unwrap());
        }
        super::read(&headers, &IF_MATCH).unwrap()
    }

    #[test]
    fn lists_of_tags() {
        let tag = |weak, tag: &str| (weak, tag.to_owned());
        assert_eq!(read(&[]), None);
        assert_eq!(read(&[","]), Some(Tags::Some(vec![])));
        assert_eq!(read(&["*"]), Some(Tags::Any));
        let some = Tags::Some(vec![tag(false, "a"), tag(true, "b,c"), tag(false, "")]);
        assert_eq!(read(&["\"a\", W/\"b,c\",", "\"\""]), Some(some));
        for wrong in ["a", "\"a", "\"a\"\"b\"", "w/\"a\"", "*, \"a\""] {
            let headers = HeaderMap::from_iter([(IF_MATCH, HeaderValue::from_str(wrong).unwrap())]);
            assert!(super::read(&headers, &IF_MATCH).is_err(), "{wrong}");
        }
    }

    #[test]
    fn if_match_is_strong_and_comes_first() {
        let tags = |text| read(&[text]);
        let decide = |if_match, if_none_match| {
            let conditions = Conditions {
                if_match,
                if_none_match,
            };
            conditions.decide("a")
        };
        assert_eq!(decide(None, None), Decision::Send);
        assert_eq!(decide(None, tags("W/\"a\"")), Decision::NotModified);
        assert_eq!(decide(None, tags("\"a-gzip\"")), Decision::Send);
        assert_eq!(decide(None, tags("*")), Decision::NotModified);
        assert_eq!(decide(tags("W/\"a\""), None), Decision::Failed);
        assert_eq!(decide(tags("*"), None), Decision::Send);
        assert_eq!(
            decide(tags("\"b\", \"a\""), tags("\"a\"")),
            Decision::NotModified
        );
        assert_eq!(decide(tags("\"b\""), tags("\"a\"")), Decision::Failed);
    }
}

//! The answers of S3, as far as they are needed. Their elements are found by name, since servers differ in
//! namespaces.

/// The contents of all elements with a name, which has no attributes.
pub fn elements<'a>(xml: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let mut rest = xml;
    std::iter::from_fn(move || {
        let (_, after) = rest.split_once(&open)?;
        let (content, after) = after.split_once(&close)?;
        rest = after;
        Some(content)
    })
}

/// The text of the first element with a name.
pub fn text(xml: &str, name: &str) -> Option<String> {
    let escaped = elements(xml, name).next()?;
    let text = escaped.replace("&lt;", "<").replace("&gt;", ">");
    let text = text.replace("&quot;", "\"").replace("&#34;", "\"");
    let text = text.replace("&apos;", "'").replace("&#39;", "'");
    Some(text.replace("&amp;", "&"))
}

#[cfg(test)]
mod tests {
    use super::{elements, text};

    #[test]
    fn elements_have_their_names() {
        let xml = "<A xmlns=\"x\"><K>a</K><B><K>&lt;b&amp;amp;</K></B><K></K><K>no end</A>";
        let found: Vec<_> = elements(xml, "K").collect();
        assert_eq!(found, ["a", "&lt;b&amp;amp;", ""]);
        assert_eq!(text("<K>&lt;b&amp;amp;</K>", "K").unwrap(), "<b&amp;");
        assert_eq!(text(xml, "L"), None);
    }
}

//! Templates of a policy file: text with placeholders in braces, such as `/instances/{instance}`.

use std::fmt;

/// The placeholder for free text.
pub const ANY: &str = "any";

/// A parsed template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    text: String,
    parts: Vec<Part>,
}

/// A part of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Text that stands for itself.
    Literal(String),
    /// A name in braces.
    Placeholder(Placeholder),
}

/// A name in braces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placeholder {
    /// The name, such as `size.vcpus`.
    pub name: String,
    /// Whether a number becomes text: `{size.vcpus:text}`.
    pub text: bool,
}

impl Template {
    /// Parses a template; an error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((literal, after)) = rest.split_once('{') {
            if literal.contains('}') {
                return Err(format!(
                    "{text:?} has a closing brace without an opening one"
                ));
            }
            if !literal.is_empty() {
                parts.push(Part::Literal(literal.to_owned()));
            }
            let (name, after) = after
                .split_once('}')
                .ok_or_else(|| format!("{text:?} has an opening brace without a closing one"))?;
            parts.push(Part::Placeholder(Placeholder::parse(name, text)?));
            rest = after;
        }
        if rest.contains('}') {
            return Err(format!(
                "{text:?} has a closing brace without an opening one"
            ));
        }
        if !rest.is_empty() {
            parts.push(Part::Literal(rest.to_owned()));
        }
        Ok(Self {
            text: text.to_owned(),
            parts,
        })
    }

    /// The parts in their order.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The placeholder, if the template is nothing else.
    pub fn alone(&self) -> Option<&Placeholder> {
        match self.parts.as_slice() {
            [Part::Placeholder(placeholder)] => Some(placeholder),
            _ => None,
        }
    }

    /// The names of the placeholders.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Literal(_) => None,
            Part::Placeholder(placeholder) => Some(placeholder.name.as_str()),
        })
    }

    /// Whether a placeholder stands for free text.
    pub fn is_free(&self) -> bool {
        self.names().any(|name| name == ANY)
    }
}

impl Placeholder {
    fn parse(inner: &str, text: &str) -> Result<Self, String> {
        let (name, as_text) = match inner.split_once(':') {
            Some((name, "text")) => (name, true),
            Some((_, other)) => {
                return Err(format!(
                    "{text:?} has the suffix {other:?}; the only one is \"text\""
                ));
            }
            None => (inner, false),
        };
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
        if name.is_empty() || !name.bytes().all(plain) {
            return Err(format!(
                "{text:?} has the placeholder {{{inner}}}, which is no name"
            ));
        }
        Ok(Self {
            name: name.to_owned(),
            text: as_text,
        })
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_has_literals_and_placeholders() {
        let template = Template::parse("/v1/{instance}/x-{size.vcpus:text}").unwrap();
        assert_eq!(
            template.names().collect::<Vec<_>>(),
            ["instance", "size.vcpus"]
        );
        assert_eq!(template.parts().len(), 4);
        assert!(template.alone().is_none());
        assert!(Template::parse("{size.vcpus}").unwrap().alone().is_some());
    }

    #[test]
    fn an_error_cites_the_template() {
        for text in [
            "{",
            "}",
            "a}b",
            "{}",
            "{a b}",
            "{a:number}",
            "{{a}}",
            "a{b}}",
        ] {
            let error = Template::parse(text).unwrap_err();
            assert!(error.contains(text), "{error}");
        }
    }
}

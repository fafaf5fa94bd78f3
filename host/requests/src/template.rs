//! Texts with placeholders in braces, such as `/instances/{instance}` and `{size.vcpus * 100000}`.

use serde::Deserialize;
use std::fmt;

/// The deepest parentheses of a calculation.
const MAX_DEPTH: usize = 32;

/// A text with placeholders.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Template {
    text: String,
    parts: Vec<Part>,
}

/// A part of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Text that stands for itself.
    Literal(String),
    /// The content of braces.
    Placeholder(Placeholder),
}

/// The content of braces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placeholder {
    /// The name or the calculation.
    pub of: Expression,
    /// Whether a number becomes text: `{size.vcpus:text}`.
    pub text: bool,
}

/// A name, or a calculation with unsigned integers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expression {
    /// The name of a value.
    Name(String),
    /// A constant.
    Number(u64),
    /// A sum.
    Sum(Vec<Expression>),
    /// Factors and divisors, from left to right. The first one is a factor.
    Product(Vec<(ArithmeticOperator, Expression)>),
}

/// An operator before a part of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArithmeticOperator {
    /// `*`
    Multiply,
    /// `/`, which rounds down.
    Divide,
}

impl Template {
    /// Parses a template; an error cites it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        let closing = || format!("{text:?} has a closing brace without an opening one");
        while let Some((literal, after)) = rest.split_once('{') {
            if literal.contains('}') {
                return Err(closing());
            }
            if !literal.is_empty() {
                parts.push(Part::Literal(literal.to_owned()));
            }
            let (inner, after) = after
                .split_once('}')
                .ok_or_else(|| format!("{text:?} has an opening brace without a closing one"))?;
            let placeholder = Placeholder::parse(inner)
                .map_err(|why| format!("{text:?} has the placeholder {{{inner}}}, which {why}"))?;
            parts.push(Part::Placeholder(placeholder));
            rest = after;
        }
        if rest.contains('}') {
            return Err(closing());
        }
        if !rest.is_empty() {
            parts.push(Part::Literal(rest.to_owned()));
        }
        let text = text.to_owned();
        Ok(Self { text, parts })
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

    /// The placeholders in their order.
    pub fn placeholders(&self) -> impl Iterator<Item = &Placeholder> {
        self.parts.iter().filter_map(|part| match part {
            Part::Literal(_) => None,
            Part::Placeholder(placeholder) => Some(placeholder),
        })
    }

    /// Whether there is no placeholder.
    pub fn is_constant(&self) -> bool {
        self.placeholders().next().is_none()
    }

    /// The template as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl TryFrom<String> for Template {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text)
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Placeholder {
    fn parse(inner: &str) -> Result<Self, String> {
        let (inner, text) = match inner.split_once(':') {
            Some((inner, "text")) => (inner, true),
            Some((_, other)) => {
                return Err(format!(
                    "has the suffix {other:?}; the only one is \"text\""
                ));
            }
            None => (inner, false),
        };
        let mut tokens = Tokens(inner.trim());
        let of = tokens.sum(0)?;
        match tokens.0 {
            "" => Ok(Self { of, text }),
            rest => Err(format!("has {rest:?} after its value")),
        }
    }
}

impl Expression {
    /// Calls `see` with each name.
    pub fn names(&self, see: &mut dyn FnMut(&str) -> Result<(), String>) -> Result<(), String> {
        match self {
            Self::Name(name) => see(name),
            Self::Number(_) => Ok(()),
            Self::Sum(parts) => parts.iter().try_for_each(|part| part.names(see)),
            Self::Product(parts) => parts.iter().try_for_each(|(_, part)| part.names(see)),
        }
    }
}

/// Whether a text is the name of a value.
pub fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(is_of_name)
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// The rest of a calculation.
struct Tokens<'a>(&'a str);

impl<'a> Tokens<'a> {
    fn take(&mut self, symbol: char) -> bool {
        let rest = self.0.strip_prefix(symbol);
        if let Some(rest) = rest {
            self.0 = rest.trim_start();
        }
        rest.is_some()
    }

    fn word(&mut self) -> &'a str {
        let end = self.0.find(|c| !is_of_name(c)).unwrap_or(self.0.len());
        let (word, rest) = self.0.split_at(end);
        self.0 = rest.trim_start();
        word
    }

    fn sum(&mut self, depth: usize) -> Result<Expression, String> {
        let mut parts = vec![self.product(depth)?];
        while self.take('+') {
            parts.push(self.product(depth)?);
        }
        Ok(match (parts.pop(), parts.is_empty()) {
            (Some(only), true) => only,
            (last, _) => {
                parts.extend(last);
                Expression::Sum(parts)
            }
        })
    }

    fn product(&mut self, depth: usize) -> Result<Expression, String> {
        let first = self.operand(depth)?;
        let mut parts = Vec::new();
        loop {
            let operator = if self.take('*') {
                ArithmeticOperator::Multiply
            } else if self.take('/') {
                ArithmeticOperator::Divide
            } else {
                break;
            };
            parts.push((operator, self.operand(depth)?));
        }
        if parts.is_empty() {
            return Ok(first);
        }
        parts.insert(0, (ArithmeticOperator::Multiply, first));
        Ok(Expression::Product(parts))
    }

    fn operand(&mut self, depth: usize) -> Result<Expression, String> {
        if self.take('(') {
            if depth == MAX_DEPTH {
                return Err("has too many parentheses".to_owned());
            }
            let inner = self.sum(depth + 1)?;
            return if self.take(')') {
                Ok(inner)
            } else {
                Err("lacks a closing parenthesis".to_owned())
            };
        }
        match self.word() {
            name if is_name(name) => Ok(Expression::Name(name.to_owned())),
            number if number.starts_with(|c: char| c.is_ascii_digit()) => number
                .parse()
                .map(Expression::Number)
                .map_err(|_| format!("has {number:?}, which is no number below 2^64")),
            _ => Err("is no name and no calculation".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_has_literals_and_placeholders() {
        let template = Template::parse("/v1/{instance}/x-{size.vcpus:text}").unwrap();
        assert_eq!(template.parts().len(), 4);
        assert!(template.alone().is_none());
        assert!(Template::parse("{size.vcpus}").unwrap().alone().is_some());
        assert!(Template::parse("plain").unwrap().is_constant());
    }

    #[test]
    fn products_come_before_sums() {
        let parse = |text: &str| Tokens(text).sum(0).unwrap();
        assert_eq!(parse("a + b*2"), parse("a+(b * 2)"));
        assert_ne!(parse("a + b*2"), parse("(a+b) * 2"));
        assert_eq!(parse("((a))"), Expression::Name("a".to_owned()));
    }

    #[test]
    fn an_error_cites_the_template() {
        let deep = format!("{{{}a{}}}", "(".repeat(33), ")".repeat(33));
        for text in [
            "{",
            "}",
            "a}b",
            "{}",
            "{a b}",
            "{a:number}",
            "{{a}}",
            "a{b}}",
            "{a +}",
            "{* a}",
            "{(a}",
            "{a)}",
            "{a - b}",
            "{a % b}",
            "{1a}",
            "{18446744073709551616}",
            "{.a}",
            "{\"a\"}",
            &deep,
        ] {
            let error = Template::parse(text).unwrap_err();
            let cited = text.replace('"', "\\\"");
            assert!(error.contains(&cited), "{error}");
        }
    }
}

//! Conditions: `NAME`, `!NAME`, `NAME = TEXT`, or a list of them, which must all hold.

use super::template::is_name;
use serde::Deserialize;
use std::fmt;

/// Tests that must all hold.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "toml::Value")]
pub struct Condition(pub Vec<Test>);

/// A question about one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Test {
    /// The value's name.
    pub name: String,
    /// The expected answer.
    pub wanted: Expected,
}

/// The expected answer of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// The value is there, and neither empty nor false.
    Something,
    /// The opposite.
    Nothing,
    /// The value is this text, or a number or flag that is written so.
    Text(String),
}

impl TryFrom<toml::Value> for Condition {
    type Error = String;

    fn try_from(value: toml::Value) -> Result<Self, String> {
        Self::parse(&value)
    }
}

impl Condition {
    /// Reads a condition.
    pub fn parse(value: &toml::Value) -> Result<Self, String> {
        let test = |value: &toml::Value| match value {
            toml::Value::String(text) => Test::parse(text),
            other => Err(format!("{other} is not the text of a condition")),
        };
        match value {
            toml::Value::Array(tests) if tests.is_empty() => {
                Err("a condition needs a test".to_owned())
            }
            toml::Value::Array(tests) => tests.iter().map(test).collect::<Result<_, _>>(),
            one => test(one).map(|test| vec![test]),
        }
        .map(Self)
    }
}

impl Test {
    fn parse(text: &str) -> Result<Self, String> {
        let (name, wanted) = match (text.split_once('='), text.strip_prefix('!')) {
            (None, Some(name)) => (name, Expected::Nothing),
            (None, None) => (text, Expected::Something),
            (Some((name, wanted)), _) => (name, Expected::Text(wanted.trim().to_owned())),
        };
        let name = name.trim().to_owned();
        if is_name(&name) && wanted != Expected::Text(String::new()) {
            Ok(Self { name, wanted })
        } else {
            Err(format!(
                "{text:?} is no condition; one is NAME, !NAME or NAME = TEXT"
            ))
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, test) in self.0.iter().enumerate() {
            let and = if at > 0 { " and " } else { "" };
            match &test.wanted {
                Expected::Something => write!(f, "{and}{}", test.name)?,
                Expected::Nothing => write!(f, "{and}!{}", test.name)?,
                Expected::Text(text) => write!(f, "{and}{} = {text}", test.name)?,
            }
        }
        Ok(())
    }
}

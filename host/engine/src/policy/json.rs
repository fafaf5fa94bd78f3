//! Checks of JSON bodies against an allow-list. A refusal names its place in the body.

use super::Refusal;
use serde_json::{Map, Value};
use std::fmt::Display;

/// A value and its path.
#[derive(Debug, Clone)]
pub struct Node<'a> {
    path: String,
    value: &'a Value,
}

impl<'a> Node<'a> {
    /// The body itself.
    pub fn root(value: &'a Value) -> Self {
        Self {
            path: String::new(),
            value,
        }
    }

    /// A refusal that names this place. The value is not repeated.
    pub fn refuse(&self, why: impl Display) -> Refusal {
        let place = if self.path.is_empty() {
            "the body"
        } else {
            &self.path
        };
        Refusal::new(format!("{place}: {why}"))
    }

    /// The value itself, for other checks.
    pub fn value(&self) -> &'a Value {
        self.value
    }

    /// The members of an object. Keys are compared exactly: `privileged` does not pass for an engine that
    /// ignores case, either.
    pub fn members(&self) -> Result<impl Iterator<Item = (&'a str, Node<'a>)>, Refusal> {
        let object: &'a Map<String, Value> = self
            .value
            .as_object()
            .ok_or_else(|| self.refuse("not an object"))?;
        let path = self.path.clone();
        Ok(object.iter().map(move |(key, value)| {
            let path = if path.is_empty() {
                key.clone()
            } else {
                format!("{path}.{key}")
            };
            (key.as_str(), Node { path, value })
        }))
    }

    /// The items of an array.
    pub fn items(&self) -> Result<impl Iterator<Item = Node<'a>>, Refusal> {
        let array = self
            .value
            .as_array()
            .ok_or_else(|| self.refuse("not an array"))?;
        let path = self.path.clone();
        Ok(array.iter().enumerate().map(move |(at, value)| Node {
            path: format!("{path}[{at}]"),
            value,
        }))
    }

    /// Requires a string.
    pub fn text(&self) -> Result<&'a str, Refusal> {
        self.value
            .as_str()
            .ok_or_else(|| self.refuse("not a string"))
    }

    /// Requires one of these strings.
    pub fn one_of(&self, allowed: &[&str]) -> Result<(), Refusal> {
        let text = self.text()?;
        if allowed.contains(&text) {
            return Ok(());
        }
        Err(self.refuse(format!("must be one of {allowed:?}")))
    }

    /// Requires this string.
    pub fn is(&self, wanted: &str) -> Result<(), Refusal> {
        if self.text()? == wanted {
            return Ok(());
        }
        Err(self.refuse(format!("must be {wanted:?}")))
    }

    /// Requires this boolean.
    pub fn is_bool(&self, wanted: bool) -> Result<(), Refusal> {
        if self.value.as_bool() == Some(wanted) {
            return Ok(());
        }
        Err(self.refuse(format!("must be {wanted}")))
    }

    /// Requires a boolean.
    pub fn bool(&self) -> Result<(), Refusal> {
        self.value
            .as_bool()
            .map(|_| ())
            .ok_or_else(|| self.refuse("not a boolean"))
    }

    /// Requires an integer within inclusive bounds.
    pub fn between(&self, least: u64, most: u64) -> Result<(), Refusal> {
        match self.value.as_u64() {
            Some(number) if (least..=most).contains(&number) => Ok(()),
            _ => Err(self.refuse(format!("must be an integer from {least} to {most}"))),
        }
    }

    /// Requires an empty object, an empty array or null.
    pub fn empty(&self) -> Result<(), Refusal> {
        let empty = match self.value {
            Value::Null => true,
            Value::Object(members) => members.is_empty(),
            Value::Array(items) => items.is_empty(),
            _ => false,
        };
        if empty {
            Ok(())
        } else {
            Err(self.refuse("must be empty"))
        }
    }

    /// The refusal of an unlisted key.
    pub fn unlisted<T>(&self) -> Result<T, Refusal> {
        Err(self.refuse("not allowed"))
    }
}

/// Requires a value. The refusal names its place and the value.
pub fn exact(body: &Value, pointer: &str, wanted: &Value) -> Result<(), Refusal> {
    required(body, pointer)?;
    match body.pointer(pointer) {
        Some(given) if given == wanted => Ok(()),
        _ => Err(Refusal::new(format!(
            "{}: must be {wanted}",
            pointer.trim_start_matches('/').replace('/', ".")
        ))),
    }
}

/// Requires a key.
pub fn required(body: &Value, pointer: &str) -> Result<(), Refusal> {
    match body.pointer(pointer) {
        Some(_) => Ok(()),
        None => Err(Refusal::new(format!(
            "{}: required",
            pointer.trim_start_matches('/').replace('/', ".")
        ))),
    }
}

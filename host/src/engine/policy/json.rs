//! Reading JSON bodies against an allow-list, with refusals that name the place.

use super::Refusal;
use serde_json::{Map, Value};
use std::fmt::Display;

/// A value and the way to it.
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

    /// As it is, for another check to judge.
    pub fn value(&self) -> &'a Value {
        self.value
    }

    /// Its members, which must be an object's. Keys are compared exactly: an engine that takes
    /// `privileged` for `Privileged` is sent neither.
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

    /// Its items, which must be an array's.
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

    /// It must be a text.
    pub fn text(&self) -> Result<&'a str, Refusal> {
        self.value
            .as_str()
            .ok_or_else(|| self.refuse("not a string"))
    }

    /// It must be one of these texts.
    pub fn one_of(&self, allowed: &[&str]) -> Result<(), Refusal> {
        let text = self.text()?;
        if allowed.contains(&text) {
            return Ok(());
        }
        Err(self.refuse(format!("must be one of {allowed:?}")))
    }

    /// It must be exactly this text.
    pub fn is(&self, wanted: &str) -> Result<(), Refusal> {
        if self.text()? == wanted {
            return Ok(());
        }
        Err(self.refuse(format!("must be {wanted:?}")))
    }

    /// It must be this truth value.
    pub fn is_bool(&self, wanted: bool) -> Result<(), Refusal> {
        if self.value.as_bool() == Some(wanted) {
            return Ok(());
        }
        Err(self.refuse(format!("must be {wanted}")))
    }

    /// It must be a truth value.
    pub fn bool(&self) -> Result<(), Refusal> {
        self.value
            .as_bool()
            .map(|_| ())
            .ok_or_else(|| self.refuse("not a boolean"))
    }

    /// It must be an integer within bounds, both included.
    pub fn between(&self, least: u64, most: u64) -> Result<(), Refusal> {
        match self.value.as_u64() {
            Some(number) if (least..=most).contains(&number) => Ok(()),
            _ => Err(self.refuse(format!("must be an integer from {least} to {most}"))),
        }
    }

    /// It must be an object or an array without content, or null.
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

    /// For a key that is not listed.
    pub fn unlisted<T>(&self) -> Result<T, Refusal> {
        Err(self.refuse("not allowed"))
    }
}

/// A key without which a body is refused.
pub fn required(body: &Value, pointer: &str) -> Result<(), Refusal> {
    match body.pointer(pointer) {
        Some(_) => Ok(()),
        None => Err(Refusal::new(format!(
            "{}: required",
            pointer.trim_start_matches('/').replace('/', ".")
        ))),
    }
}

//! The settings of a node that a file declares.

use super::file::optional_pattern;
use regex::Regex;
use serde::Deserialize;
use serde_json::Value;
use std::net::IpAddr;

/// A setting of a node.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// One sentence for the operator.
    pub about: String,
    /// Its type; required unless the default has it.
    #[serde(default, rename = "type")]
    pub kind: Option<SettingType>,
    /// Its value where the node has none. Without a default, the setting is required.
    #[serde(default)]
    pub default: Option<Value>,
    /// Whether it may be missing. It has no default then.
    #[serde(default)]
    pub optional: bool,
    /// The form of the whole text. Its named groups are parts of the setting.
    #[serde(default, deserialize_with = "optional_pattern")]
    pub pattern: Option<Regex>,
    /// The least number.
    #[serde(default)]
    pub min: u64,
    /// The greatest number.
    #[serde(default)]
    pub max: Option<u64>,
    /// The beginning of names of images that it replaces.
    #[serde(default)]
    pub replaces: Option<String>,
}

/// The type of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SettingType {
    /// Text.
    String,
    /// A whole number that is not negative.
    Integer,
    /// An IP address.
    Address,
    /// Texts.
    List,
    /// IP addresses.
    Addresses,
    /// Whole numbers by name.
    Numbers,
}

impl Setting {
    /// The type; that of the default if none is declared.
    pub fn kind(&self) -> SettingType {
        self.kind.unwrap_or(match &self.default {
            Some(Value::Number(_)) => SettingType::Integer,
            Some(Value::Array(_)) => SettingType::List,
            Some(Value::Object(_)) => SettingType::Numbers,
            _ => SettingType::String,
        })
    }

    /// Whether the pattern has a group of this name.
    pub fn has_group(&self, name: &str) -> bool {
        let pattern = self
            .pattern
            .as_ref()
            .filter(|_| self.kind() == SettingType::String);
        pattern.is_some_and(|pattern| pattern.capture_names().flatten().any(|group| group == name))
    }

    /// The part of a value that the group of this name fits.
    pub fn group(&self, name: &str, value: &Value) -> Option<String> {
        let captures = self.pattern.as_ref()?.captures(value.as_str()?)?;
        captures.name(name).map(|group| group.as_str().to_owned())
    }

    /// Checks the declaration.
    pub fn check(&self) -> Result<(), String> {
        if self.optional && self.default.is_some() {
            return Err("an optional setting has no default".to_owned());
        }
        if self.replaces.is_some() && (self.kind() != SettingType::String || self.optional) {
            return Err("replaces: only for a text that is never missing".to_owned());
        }
        match &self.default {
            None if self.kind.is_none() && !self.optional => {
                Err("needs a default or a type".to_owned())
            }
            None => Ok(()),
            Some(default) => self
                .accept(default)
                .map(drop)
                .map_err(|why| format!("default: {why}")),
        }
    }

    /// Whether its value can be this text, or the number that is written so.
    pub fn may_be(&self, text: &str) -> bool {
        let number = text.parse::<u64>().ok();
        let number = number.filter(|_| self.kind() == SettingType::Integer);
        let value = number.map_or_else(|| text.into(), Value::from);
        self.accept(&value).is_ok()
    }

    /// Checks a value of the setting, and gives it in its usual form.
    pub fn accept(&self, value: &Value) -> Result<Value, String> {
        let kind = self.kind();
        let wrong = || format!("must be {}", kind.described());
        let number = |value: &Value| match value.as_u64() {
            Some(number) if number < self.min => Err(format!("must be at least {}", self.min)),
            Some(number) => match self.max.filter(|max| number > *max) {
                Some(max) => Err(format!("must be at most {max}")),
                None => Ok(Value::from(number)),
            },
            None => Err(wrong()),
        };
        match (kind, value) {
            (SettingType::String, Value::String(text)) => self.text(text),
            (SettingType::Integer, given) => number(given),
            (SettingType::Address, Value::String(text)) => address(text),
            (SettingType::List | SettingType::Addresses, Value::Array(items)) => items
                .iter()
                .map(|item| match (item.as_str(), kind) {
                    (None, _) => Err(wrong()),
                    (Some(text), SettingType::Addresses) => address(text),
                    (Some(text), _) => self.text(text),
                })
                .collect(),
            (SettingType::Numbers, Value::Object(members)) => members
                .iter()
                .map(|(name, value)| {
                    let value = number(value).map_err(|why| format!("{name}: {why}"))?;
                    Ok((name.clone(), value))
                })
                .collect(),
            _ => Err(wrong()),
        }
    }

    fn text(&self, text: &str) -> Result<Value, String> {
        match &self.pattern {
            Some(pattern) if !pattern.is_match(text) => Err(format!(
                "{text:?} does not fit the pattern {}: {}",
                shown(pattern),
                self.about
            )),
            _ => Ok(text.into()),
        }
    }
}

/// The pattern as the file has it.
pub fn shown(pattern: &Regex) -> &str {
    let text = pattern.as_str();
    let inner = text
        .strip_prefix("^(?:")
        .and_then(|text| text.strip_suffix(")$"));
    inner.unwrap_or(text)
}

fn address(text: &str) -> Result<Value, String> {
    let address = text.parse::<IpAddr>();
    address
        .map(|address| address.to_string().into())
        .map_err(|_| format!("{text:?} is not an IP address"))
}

impl SettingType {
    fn described(self) -> &'static str {
        match self {
            Self::String => "text",
            Self::Integer => "a whole number that is not negative",
            Self::Address => "an IP address",
            Self::List => "a list of texts",
            Self::Addresses => "a list of IP addresses",
            Self::Numbers => "a table of whole numbers that are not negative",
        }
    }
}

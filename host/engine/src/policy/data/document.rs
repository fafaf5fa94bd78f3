//! The policy file as written, and the checks of it that need no node.

use super::names;
use super::schema;
use super::template::Template;
use http::Method;
use regex::Regex;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::BTreeMap;

/// A policy file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Document {
    /// The kind of engine, as the driver names it.
    pub kind: String,
    /// One sentence for its reader.
    pub about: String,
    /// Whether the engine runs in Wharf's own process.
    #[serde(default)]
    pub in_process: bool,
    /// Whether a path may begin with a version of the interface, such as `/v1.41`.
    #[serde(default)]
    pub versioned: bool,
    /// Settings of a node that bind the driver.
    #[serde(default)]
    pub settings: BTreeMap<String, Setting>,
    /// Names that are made of other placeholders.
    #[serde(default)]
    pub names: BTreeMap<String, Choice>,
    /// The permitted requests.
    #[serde(default)]
    pub request: BTreeMap<String, Rule>,
    /// The permitted copies of content.
    #[serde(default)]
    pub transfer: BTreeMap<String, TransferRule>,
}

/// One of these templates.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Choice {
    /// One permitted value.
    One(Template),
    /// Several permitted values.
    Any(Vec<Template>),
}

impl Choice {
    /// The templates.
    pub fn templates(&self) -> &[Template] {
        match self {
            Self::One(template) => std::slice::from_ref(template),
            Self::Any(templates) => templates,
        }
    }
}

/// A setting of a node.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// One sentence for the operator.
    pub about: String,
    /// Its type, if there is no default that tells it.
    #[serde(default, rename = "type")]
    pub kind: Option<SettingType>,
    /// Its value where the node has none. Without a default, the setting is required.
    #[serde(default)]
    pub default: Option<Value>,
    /// The form of the whole text.
    #[serde(default, deserialize_with = "pattern")]
    pub pattern: Option<Regex>,
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
}

/// A request that the driver may send.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// One sentence for the reader.
    pub about: String,
    /// The method.
    #[serde(deserialize_with = "method")]
    pub method: Method,
    /// The path.
    pub path: Template,
    /// The query's keys, which are all needed unless they end in `?`.
    #[serde(default)]
    pub query: BTreeMap<String, QueryValue>,
    /// The calls that may send it.
    #[serde(default)]
    pub calls: Option<Calls>,
    /// The list of which one member fits the path, the query and the body.
    #[serde(default)]
    pub each: Option<RuleList>,
    /// The body.
    #[serde(default)]
    pub body: BodyRule,
    /// Headers that the host adds.
    #[serde(default)]
    pub headers: BTreeMap<String, Template>,
    /// Whether it is a long request, for `job` in place of `send`.
    #[serde(default)]
    pub job: bool,
    /// Ids that the answer tells.
    #[serde(default)]
    pub learn: BTreeMap<String, Learn>,
}

/// A copy of the content of one container to another.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransferRule {
    /// One sentence for the reader.
    pub about: String,
    /// The path and query of the GET for the content.
    pub read: Template,
    /// Those of the GET for the changes to the image.
    pub changes: Template,
    /// Those of the PUT that writes the content.
    pub write: Template,
    /// The calls that may begin it.
    pub calls: Calls,
}

/// The permitted value of a key of the query.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum QueryValue {
    /// This text.
    Text(Template),
    /// An integer up to a bound.
    AtMost {
        /// The bound.
        max: u64,
    },
    /// Text of this form.
    Form {
        /// The form of the whole text.
        #[serde(deserialize_with = "needed_pattern")]
        pattern: Regex,
    },
    /// JSON that fits a schema.
    Json {
        /// The schema.
        json: Value,
    },
}

/// Calls of a driver, by their subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Calls {
    /// About the whole node.
    Node,
    /// The survey of the node.
    Survey,
    /// The marking of the engine's store.
    Mark,
    /// About one instance.
    Instance,
    /// About one instance, with changes.
    Change,
    /// The creation of one instance.
    Create,
    /// The move of one instance to this node.
    Move,
}

/// A list whose members a request may be about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleList {
    /// The instance's published ports.
    Published,
}

/// The permitted body of a request.
#[derive(Debug, Clone, Default)]
pub enum BodyRule {
    /// Nothing.
    #[default]
    None,
    /// An archive of files of the blueprint.
    Archive,
    /// One file of the blueprint.
    File,
    /// JSON that fits a schema.
    Json(Value),
}

/// An id that an answer tells.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Learn {
    /// The status of the answer.
    pub status: u16,
    /// Where the list stands in the answer, if there is a list.
    #[serde(default)]
    pub items: Option<String>,
    /// The required values of an item of the list, by JSON pointer.
    #[serde(default, rename = "where")]
    pub conditions: BTreeMap<String, Template>,
    /// Where the id stands in the answer, or in the item.
    pub pointer: String,
    /// The form of the whole text. Its first group is the id, if it has one.
    #[serde(deserialize_with = "needed_pattern")]
    pub pattern: Regex,
}

impl Document {
    /// Reads and checks a policy file. An error names the place in it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let document: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        document.check()?;
        Ok(document)
    }

    fn check(&self) -> Result<(), String> {
        if self.kind.is_empty() {
            return Err("kind: must not be empty".to_owned());
        }
        for (name, setting) in &self.settings {
            setting
                .check()
                .map_err(|why| format!("settings.{name}: {why}"))?;
        }
        for (name, choice) in &self.names {
            for template in choice.templates() {
                // A name of names could be circular.
                let nested = template.names().find(|used| used.starts_with("name."));
                let why = match nested {
                    Some(used) => Err(format!("{{{used}}} in a name")),
                    None => names::check(self, template, &names::Context::default()),
                };
                why.map_err(|why| format!("names.{name}: {why}"))?;
            }
        }
        for (name, rule) in &self.request {
            rule.validate(self)
                .map_err(|why| format!("request.{name}.{why}"))?;
        }
        for (name, rule) in &self.transfer {
            for template in [&rule.read, &rule.changes, &rule.write] {
                names::check(self, template, &names::Context::default())
                    .map_err(|why| format!("transfer.{name}: {why}"))?;
            }
        }
        Ok(())
    }
}

impl Setting {
    /// The type, which the default tells if it is not written.
    pub fn kind(&self) -> SettingType {
        self.kind.unwrap_or(match &self.default {
            Some(Value::Number(_)) => SettingType::Integer,
            Some(Value::Array(_)) => SettingType::List,
            _ => SettingType::String,
        })
    }

    fn check(&self) -> Result<(), String> {
        match &self.default {
            None if self.kind.is_none() => Err("needs a default or a type".to_owned()),
            None => Ok(()),
            Some(default) => self
                .accept(default)
                .map_err(|why| format!("default: {why}")),
        }
    }

    /// Checks a value of the setting.
    pub fn accept(&self, value: &Value) -> Result<(), String> {
        let fits = |text: &str| match &self.pattern {
            Some(pattern) if !whole(pattern, text) => {
                Err(format!("{text:?} does not fit the pattern {pattern}"))
            }
            _ => Ok(()),
        };
        match (self.kind(), value) {
            (SettingType::String, Value::String(text)) => fits(text),
            (SettingType::Integer, Value::Number(number)) if number.is_u64() => Ok(()),
            (SettingType::Address, Value::String(text)) => text
                .parse::<std::net::IpAddr>()
                .map(drop)
                .map_err(|_| format!("{text:?} is not an IP address")),
            (SettingType::List, Value::Array(items)) => items.iter().try_for_each(|item| {
                let text = item.as_str().ok_or("must be a list of texts")?;
                fits(text)
            }),
            (kind, _) => Err(format!("must be {}", kind.described())),
        }
    }
}

impl SettingType {
    fn described(self) -> &'static str {
        match self {
            Self::String => "text",
            Self::Integer => "a whole number that is not negative",
            Self::Address => "an IP address",
            Self::List => "a list of texts",
        }
    }
}

impl Rule {
    fn validate(&self, document: &Document) -> Result<(), String> {
        let file = matches!(self.body, BodyRule::File);
        let plain = names::Context {
            file,
            ..names::Context::default()
        };
        let each = self
            .each
            .map(|RuleList::Published| names::PUBLISHED.to_owned());
        let free = names::Context {
            free: true,
            each: each.clone(),
            ..plain.clone()
        };
        if !self.path.to_string().starts_with('/') {
            return Err("path: must begin with /".to_owned());
        }
        names::check(document, &self.path, &free).map_err(|why| format!("path: {why}"))?;
        for (key, value) in &self.query {
            let checked = match value {
                QueryValue::Text(template) => names::check(document, template, &free),
                QueryValue::AtMost { .. } | QueryValue::Form { .. } => Ok(()),
                QueryValue::Json { json } => schema::check(document, json, each.clone()),
            };
            checked.map_err(|why| format!("query.{key}: {why}"))?;
        }
        for (name, template) in &self.headers {
            // Other headers have a meaning for HTTP, or identify the host.
            if !name.to_ascii_lowercase().starts_with("x-") {
                return Err(format!("headers.{name}: must begin with \"X-\""));
            }
            http::HeaderName::try_from(name.as_str())
                .map_err(|_| format!("headers.{name}: not the name of a header"))?;
            names::check(document, template, &plain)
                .map_err(|why| format!("headers.{name}: {why}"))?;
        }
        if let BodyRule::Json(schema) = &self.body {
            schema::check(document, schema, each).map_err(|why| format!("body: {why}"))?;
        }
        for (name, learn) in &self.learn {
            for (pointer, template) in &learn.conditions {
                names::check(document, template, &plain)
                    .map_err(|why| format!("learn.{name}.where.{pointer:?}: {why}"))?;
            }
            let pointers = learn.conditions.keys().chain(&learn.items);
            for pointer in pointers.chain([&learn.pointer]) {
                if !pointer.is_empty() && !pointer.starts_with('/') {
                    return Err(format!(
                        "learn.{name}: {pointer:?} is not a JSON pointer, which begins with /"
                    ));
                }
            }
            if learn.items.is_none() && !learn.conditions.is_empty() {
                return Err(format!("learn.{name}: `where` needs `items`"));
            }
        }
        Ok(())
    }
}

/// Whether a pattern fits a whole text.
pub fn whole(pattern: &Regex, text: &str) -> bool {
    pattern
        .find(text)
        .is_some_and(|found| found.len() == text.len())
}

/// A pattern that always stands for a whole text.
fn compile(text: &str) -> Result<Regex, String> {
    Regex::new(&format!("^(?:{text})$"))
        .map_err(|error| format!("not a pattern: {error}").replace('\n', " "))
}

fn pattern<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Regex>, D::Error> {
    needed_pattern(deserializer).map(Some)
}

fn needed_pattern<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Regex, D::Error> {
    let text = String::deserialize(deserializer)?;
    compile(&text).map_err(serde::de::Error::custom)
}

fn method<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Method, D::Error> {
    const KNOWN: [Method; 6] = [
        Method::GET,
        Method::HEAD,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
    ];
    let text = String::deserialize(deserializer)?;
    KNOWN
        .into_iter()
        .find(|method| method.as_str() == text)
        .ok_or_else(|| {
            serde::de::Error::custom(format!(
                "{text:?} is not one of GET, HEAD, POST, PUT, PATCH, DELETE"
            ))
        })
}

impl<'de> Deserialize<'de> for Template {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for BodyRule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(word) if word == "archive" => Ok(Self::Archive),
            Value::String(word) if word == "file" => Ok(Self::File),
            Value::Object(schema) => Ok(Self::Json(Value::Object(schema))),
            other => Err(serde::de::Error::custom(format!(
                "{other} is not \"archive\", \"file\" or a JSON Schema"
            ))),
        }
    }
}

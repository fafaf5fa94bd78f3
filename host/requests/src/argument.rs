//! The arguments of a request: their declarations, and the check of the given ones.

use super::condition::Condition;
use super::fault::Fault;
use super::file::optional_pattern;
use super::setting::shown;
use super::template::Template;
use super::writer::{Writer, scalar};
use regex::Regex;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The most bytes of a name or a value.
const MAX_TEXT: usize = 4096;

/// An argument of a request.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "ArgumentToml")]
pub struct Argument {
    /// Its permitted values.
    pub form: Form,
    /// Whether it may be left out.
    pub optional: bool,
    /// When it may be given.
    pub when: Option<Condition>,
}

/// The permitted values of an argument.
#[derive(Debug, Clone)]
pub enum Form {
    /// One of these texts.
    OneOf(Vec<Template>),
    /// `true` or `false`.
    Flag,
    /// An integer up to this one.
    Max(u64),
    /// Text of this form.
    Pattern(Regex),
    /// A member of a list of the call.
    Of(Members),
}

/// A list of the call of which an argument names a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Members {
    /// The published ports, by the port of the node.
    Published,
    /// The blueprint's files, by their path.
    Files,
    /// The instance's volumes, by their id.
    Mounts,
}

impl Members {
    /// The name of the list.
    pub fn list(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Files => "files",
            Self::Mounts => "mounts",
        }
    }

    /// The part by which a driver names a member.
    fn key(self) -> &'static str {
        match self {
            Self::Published => "node_port",
            Self::Files => "path",
            Self::Mounts => "volume",
        }
    }
}

/// As the file has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ArgumentToml {
    one_of: Option<Vec<Template>>,
    flag: Option<bool>,
    max: Option<u64>,
    #[serde(default, deserialize_with = "optional_pattern")]
    pattern: Option<Regex>,
    of: Option<Members>,
    #[serde(default)]
    optional: bool,
    when: Option<Condition>,
}

impl TryFrom<ArgumentToml> for Argument {
    type Error = &'static str;

    fn try_from(written: ArgumentToml) -> Result<Self, Self::Error> {
        let ArgumentToml {
            one_of,
            flag,
            max,
            pattern,
            of,
            optional,
            when,
        } = written;
        let form = match (one_of, flag, max, pattern, of) {
            (Some(texts), None, None, None, None) if !texts.is_empty() => Form::OneOf(texts),
            (None, Some(true), None, None, None) => Form::Flag,
            (None, None, Some(max), None, None) => Form::Max(max),
            (None, None, None, Some(pattern), None) => Form::Pattern(pattern),
            (None, None, None, None, Some(list)) => Form::Of(list),
            _ => return Err("has one of `one-of`, `flag = true`, `max`, `pattern` and `of`"),
        };
        Ok(Self {
            form,
            optional,
            when,
        })
    }
}

/// The values of arguments by their names.
pub type ArgumentValues<'a> = BTreeMap<&'a str, Value>;

/// Checks the given arguments of a request.
pub fn check<'a>(
    writer: &mut Writer<'a>,
    declared: &'a BTreeMap<String, Argument>,
    given: &[(String, String)],
) -> Result<ArgumentValues<'a>, Fault> {
    let mut values = ArgumentValues::new();
    for (at, (name, text)) in given.iter().enumerate() {
        if name.len() > MAX_TEXT || text.len() > MAX_TEXT {
            return Err(Fault::refused(format!(
                "an argument has more than {MAX_TEXT} bytes"
            )));
        }
        if !declared.contains_key(name) {
            return Err(Fault::refused(format!("there is no argument {name:?}")));
        }
        let before = given.get(..at).unwrap_or_default();
        if before.iter().any(|(other, _)| other == name) {
            return Err(Fault::refused(format!("the argument {name:?} twice")));
        }
    }
    for (name, argument) in declared {
        let text = given.iter().find(|(given, _)| given == name);
        let text = text.map(|(_, text)| text.as_str());
        let value = argument
            .value(writer, text)
            .map_err(|fault| fault.required().at(&format!("argument {name}")))?;
        values.extend(value.map(|value| (name.as_str(), value)));
    }
    Ok(values)
}

/// The number that is written so.
fn number(text: &str) -> Option<u64> {
    let number = text.parse::<u64>().ok();
    number.filter(|number| number.to_string() == text)
}

/// Whether a pattern may permit a text. In a path, a slash would begin another part of it.
fn is_plain(text: &str) -> bool {
    !text.contains(|c: char| c == '/' || c.is_control())
}

impl Argument {
    /// Whether its value can be this text, or is written so.
    pub fn may_be(&self, text: &str) -> bool {
        match &self.form {
            Form::OneOf(all) => all
                .iter()
                .any(|one| !one.is_constant() || one.as_str() == text),
            Form::Flag => text == "true",
            Form::Max(max) => number(text).is_some_and(|number| number <= *max),
            Form::Pattern(pattern) => is_plain(text) && pattern.is_match(text),
            Form::Of(_) => true,
        }
    }

    fn value<'a>(
        &'a self,
        writer: &mut Writer<'a>,
        given: Option<&str>,
    ) -> Result<Option<Value>, Fault> {
        let may_be_given = match &self.when {
            Some(when) => writer.holds(when)?,
            None => true,
        };
        let Some(given) = given else {
            return match &self.form {
                _ if self.optional || !may_be_given => Ok(None),
                Form::Flag => Ok(None),
                Form::OneOf(_) => {
                    let first = self.permitted(writer)?.into_iter().next();
                    Ok(first.map(Value::from))
                }
                _ => Err(Fault::refused("required".to_owned())),
            };
        };
        let wrong = |what: String| Fault::refused(format!("{given:?}; it must be {what}"));
        let value = match &self.form {
            Form::OneOf(templates) => {
                if !self.permitted(writer)?.iter().any(|text| text == given) {
                    let all: Vec<_> = templates.iter().map(Template::as_str).collect();
                    return Err(wrong(all.join(" or ")));
                }
                Some(given.into())
            }
            Form::Flag => match given {
                "true" => Some(Value::Bool(true)),
                "false" => None,
                _ => return Err(wrong("true or false".to_owned())),
            },
            Form::Max(max) => match number(given).filter(|number| number <= max) {
                Some(number) => Some(number.into()),
                None => return Err(wrong(format!("an integer up to {max}"))),
            },
            Form::Pattern(pattern) => {
                let form = || format!("text of the form {}", shown(pattern));
                if !is_plain(given) {
                    let form = form();
                    return Err(wrong(format!("{form}, without / and control characters")));
                }
                if !pattern.is_match(given) {
                    return Err(wrong(form()));
                }
                Some(given.into())
            }
            Form::Of(list) => {
                let members = writer.members(list.list())?;
                let is_called = |member: &Value| {
                    let name = member.get(list.key()).and_then(scalar);
                    name.is_some_and(|name| name == given)
                };
                let found = members.into_iter().find(is_called);
                let wanted = || wrong(format!("one of the call's {}", list.list()));
                Some(found.ok_or_else(wanted)?)
            }
        };
        if let (Some(_), Some(when), false) = (&value, &self.when, may_be_given) {
            return Err(Fault::refused(format!("only when {when}")));
        }
        Ok(value)
    }

    /// The permitted texts. Learnt ids may be several of them.
    fn permitted<'a>(&'a self, writer: &mut Writer<'a>) -> Result<Vec<String>, Fault> {
        let mut permitted = Vec::new();
        let Form::OneOf(templates) = &self.form else {
            return Ok(permitted);
        };
        for template in templates {
            match writer.texts(template) {
                Ok(texts) => permitted.extend(texts),
                Err(fault) if fault.is_absent() => {}
                Err(fault) => return Err(fault),
            }
        }
        Ok(permitted)
    }
}

//! Ids, numbers and facts that the answers of an engine tell a call, for its later requests.

use super::CallScope;
use super::answer;
use super::names::ValueType;
use super::setting::shown;
use super::template::Template;
use super::writer::scalar;
use regex::Regex;
use serde::Deserialize;
use std::collections::{BTreeMap, HashSet};

/// The most ids of one name that a call keeps. A list has an id for each instance of the node.
const MAX_IDS: usize = 4096;
/// The most bytes of an id.
const MAX_ID: usize = 256;

/// The declaration of a learnt value.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "LearnToml")]
pub struct Learn {
    /// The statuses of the answers that tell it.
    pub statuses: Vec<u16>,
    /// Where the list stands in the answer, if there is a list.
    pub items: Option<String>,
    /// The required values of an item of the list, by JSON pointer.
    pub conditions: BTreeMap<String, Template>,
    /// Where the value stands in the answer, or in the item.
    pointer: String,
    kind: LearnKind,
}

/// The kinds of learnt values.
#[derive(Debug, Clone)]
enum LearnKind {
    /// An id, which becomes a part of a path. Its text has this form, whose first group is the id.
    Id(Regex),
    /// An id in a line of an answer that is text. The whole line has this form, whose first group is the id.
    Line(Regex),
    /// An absolute directory of the node, for bodies alone: no part of a path takes its slashes.
    Directory,
    /// A number above zero, also as a text. Later answers change nothing: a request of the call may be their cause.
    FirstNumber,
    /// The sum of the positive numbers in a list.
    Sum,
    /// That an answer contains one of these words, in any case.
    Fact(Vec<String>),
}

/// A learnt value.
pub enum LearntValue {
    Ids(Vec<String>),
    FirstNumber(u64),
    Sum(u64),
    Fact,
}

/// As the file has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LearnToml {
    status: Statuses,
    items: Option<String>,
    #[serde(default, rename = "where")]
    conditions: BTreeMap<String, Template>,
    pointer: Option<String>,
    pattern: Option<String>,
    line: Option<String>,
    #[serde(default)]
    directory: bool,
    number: Option<Number>,
    sum: Option<String>,
    says: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "must be a status, or a list of statuses")]
enum Statuses {
    One(u16),
    More(Vec<u16>),
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Number {
    First,
}

impl TryFrom<LearnToml> for Learn {
    type Error = String;

    fn try_from(written: LearnToml) -> Result<Self, String> {
        let LearnToml {
            status,
            items,
            conditions,
            pointer,
            pattern,
            line,
            directory,
            number,
            sum,
            says,
        } = written;
        let pointers = conditions.keys().chain(&items).chain(&pointer).chain(&sum);
        for pointer in pointers {
            if !pointer.is_empty() && !pointer.starts_with('/') {
                return Err(format!(
                    "{pointer:?} is not a JSON pointer, which begins with /"
                ));
            }
        }
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if let Some(path) = items.as_ref().filter(|path| path.split('/').any(is_number)) {
            return Err(format!(
                "items: {path:?} has a number; its parts are keys of objects"
            ));
        }
        if items.is_none() && !conditions.is_empty() {
            return Err("`where` needs `items`".to_owned());
        }
        let forms = (&items, pointer, pattern, number, sum, says);
        let (pointer, kind) = match (forms, line, directory) {
            ((None, None, None, None, None, None), Some(line), false) => {
                (String::new(), LearnKind::Line(super::file::compile(&line)?))
            }
            ((None, Some(pointer), None, None, None, None), None, true) => {
                (pointer, LearnKind::Directory)
            }
            ((_, Some(pointer), Some(pattern), None, None, None), None, false) => {
                (pointer, LearnKind::Id(super::file::compile(&pattern)?))
            }
            ((None, Some(pointer), None, Some(Number::First), None, None), None, false) => {
                (pointer, LearnKind::FirstNumber)
            }
            ((Some(_), None, None, None, Some(pointer), None), None, false) => {
                (pointer, LearnKind::Sum)
            }
            ((None, None, None, None, None, Some(words)), None, false) if !words.is_empty() => {
                let words = words.iter().map(|word| word.to_lowercase());
                (String::new(), LearnKind::Fact(words.collect()))
            }
            _ => {
                return Err(
                    "has `pointer` and `pattern` for ids, `line` for an id in a text, `pointer` and \
                     `directory` for a directory, `pointer` and `number` for a number, `items` and `sum` for a sum, or `says` for a fact"
                        .to_owned(),
                );
            }
        };
        Ok(Self {
            statuses: match status {
                Statuses::One(status) => vec![status],
                Statuses::More(statuses) => statuses,
            },
            items,
            conditions,
            pointer,
            kind,
        })
    }
}

impl Learn {
    /// The type of the value.
    pub fn value_type(&self) -> ValueType {
        match self.kind {
            LearnKind::Id(_) | LearnKind::Line(_) | LearnKind::Directory => ValueType::Ids,
            LearnKind::FirstNumber | LearnKind::Sum => ValueType::Number,
            LearnKind::Fact(_) => ValueType::Flag,
        }
    }

    /// The value and its place in the answer, in words.
    pub fn described(&self) -> String {
        let pointer = &self.pointer;
        let mut words = vec![match &self.kind {
            LearnKind::Id(pattern) => {
                format!("an id at {pointer:?} of the form {}", shown(pattern))
            }
            LearnKind::Line(pattern) => format!("an id in a line of the form {}", shown(pattern)),
            LearnKind::Directory => format!("a directory of the node at {pointer:?}"),
            LearnKind::FirstNumber => format!("the first number above zero at {pointer:?}"),
            LearnKind::Sum => format!("the sum of the numbers at {pointer:?}"),
            LearnKind::Fact(said) => format!("whether it says one of {said:?}"),
        }];
        let items = self.items.iter();
        words.extend(items.map(|items| format!("for each item of the list at {items:?}")));
        let conditions = self.conditions.iter();
        words.extend(conditions.map(|(at, value)| format!("where {at:?} is {value}")));
        words.join(", ")
    }

    fn find(&self, body: &[u8], text: &dyn Fn(&Template) -> Option<String>) -> Option<LearntValue> {
        let mut learnt = match &self.kind {
            LearnKind::Id(_) | LearnKind::Directory => LearntValue::Ids(Vec::new()),
            LearnKind::Line(pattern) => {
                let text = String::from_utf8_lossy(body);
                let lines = text.lines().map(str::trim_end);
                let ids = lines.filter_map(|line| id(line, pattern));
                return Some(LearntValue::Ids(ids.take(MAX_IDS).collect()));
            }
            LearnKind::FirstNumber => LearntValue::FirstNumber(0),
            LearnKind::Sum => LearntValue::Sum(0),
            LearnKind::Fact(words) => {
                let said = String::from_utf8_lossy(body).to_lowercase();
                let is_said = words.iter().any(|word| said.contains(word.as_str()));
                return is_said.then_some(LearntValue::Fact);
            }
        };
        let wanted = self.conditions.values().map(text);
        let wanted = wanted.collect::<Option<Vec<_>>>()?;
        let mut pointers = vec![self.pointer.as_str()];
        pointers.extend(self.conditions.keys().map(String::as_str));
        answer::read(body, self.items.as_deref(), &pointers, &mut |parts| {
            let Some((Some(value), given)) = parts.split_first() else {
                return;
            };
            let mut given = given.iter().map(|given| given.as_ref().and_then(scalar));
            if !wanted
                .iter()
                .all(|wanted| given.next().flatten().as_ref() == Some(wanted))
            {
                return;
            }
            match (&self.kind, &mut learnt) {
                (LearnKind::Id(pattern), LearntValue::Ids(ids)) if ids.len() < MAX_IDS => {
                    ids.extend(value.as_str().and_then(|text| id(text, pattern)));
                }
                (LearnKind::Directory, LearntValue::Ids(ids)) => {
                    ids.extend(
                        value
                            .as_str()
                            .filter(|path| is_directory(path))
                            .map(Into::into),
                    );
                }
                (_, LearntValue::FirstNumber(sum) | LearntValue::Sum(sum)) => {
                    let written = || value.as_str()?.parse().ok();
                    let number = value.as_u64().or_else(written);
                    *sum = sum.saturating_add(number.unwrap_or_default());
                }
                _ => {}
            }
        })?;
        Some(learnt).filter(|learnt| !matches!(learnt, LearntValue::FirstNumber(0)))
    }
}

/// Finds the values in an answer to a request with these entries. `text` writes a template of a condition.
pub fn find(
    entries: &BTreeMap<String, Learn>,
    status: u16,
    body: &[u8],
    text: &dyn Fn(&Template) -> Option<String>,
) -> Vec<(String, LearntValue)> {
    let entries = entries.iter();
    let entries = entries.filter(|(_, learn)| learn.statuses.contains(&status));
    let found = entries.clone();
    let found = found.filter_map(|(name, learn)| Some((name.clone(), learn.find(body, text)?)));
    let mut found: Vec<_> = found.collect();
    // First numbers belong together: with some of another answer, they would be of no state at all.
    let is_first =
        |(_, found): &(String, LearntValue)| matches!(found, LearntValue::FirstNumber(_));
    let first = entries.filter(|(_, learn)| matches!(learn.kind, LearnKind::FirstNumber));
    if found.iter().filter(|found| is_first(found)).count() < first.count() {
        found.retain(|found| !is_first(found));
    }
    found
}

/// Keeps values for the rest of the call.
pub fn keep(scope: &mut CallScope, found: Vec<(String, LearntValue)>) {
    for (name, one) in found {
        match one {
            LearntValue::Ids(ids) => {
                let kept = scope.learnt.entry(name).or_default();
                let mut known: HashSet<String> = kept.iter().cloned().collect();
                let new = ids.into_iter().filter(|id| known.insert(id.clone()));
                kept.extend(new);
                kept.truncate(MAX_IDS);
            }
            LearntValue::FirstNumber(number) => {
                scope.numbers.entry(name).or_insert(number);
            }
            LearntValue::Sum(number) => {
                scope.numbers.insert(name, number);
            }
            LearntValue::Fact => {
                scope.facts.insert(name);
            }
        }
    }
}

/// Whether a text is an absolute path in normal form.
fn is_directory(path: &str) -> bool {
    path.len() <= MAX_ID && super::path::check(path).is_ok() && !path.contains('?')
}

fn id(text: &str, pattern: &Regex) -> Option<String> {
    let found = pattern.captures(text)?;
    let id = found.get(1).or_else(|| found.get(0))?.as_str();
    // An id becomes a part of a path.
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
    ((1..=MAX_ID).contains(&id.len()) && id.bytes().all(plain)).then(|| id.to_owned())
}

#[cfg(test)]
mod tests;

//! Ids, numbers and facts that the answers of an engine tell a call, for its later requests.

use super::CallScope;
use super::answer;
use super::names::ValueType;
use super::setting::shown;
use super::template::Template;
use super::writer::scalar;
use regex::Regex;
use serde::Deserialize;
use serde_json::Value;
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
    told: LearnKind,
}

/// The kinds of learnt values.
#[derive(Debug, Clone)]
enum LearnKind {
    /// An id, which becomes a part of a path. Its text has this form, whose first group is the id.
    Id(Regex),
    /// A number above zero. Later answers change nothing: a request of the call may be their cause.
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
        let (pointer, told) = match (&items, pointer, pattern, number, sum, says) {
            (_, Some(pointer), Some(pattern), None, None, None) => {
                (pointer, LearnKind::Id(super::file::compile(&pattern)?))
            }
            (None, Some(pointer), None, Some(Number::First), None, None) => {
                (pointer, LearnKind::FirstNumber)
            }
            (Some(_), None, None, None, Some(pointer), None) => (pointer, LearnKind::Sum),
            (None, None, None, None, None, Some(words)) if !words.is_empty() => {
                let words = words.iter().map(|word| word.to_lowercase());
                (String::new(), LearnKind::Fact(words.collect()))
            }
            _ => {
                return Err(
                    "has `pointer` and `pattern` for ids, `pointer` and `number` for a number, \
                     `items` and `sum` for a sum, or `says` for a fact"
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
            told,
        })
    }
}

impl Learn {
    /// The type of the value.
    pub fn value_type(&self) -> ValueType {
        match self.told {
            LearnKind::Id(_) => ValueType::Ids,
            LearnKind::FirstNumber | LearnKind::Sum => ValueType::Number,
            LearnKind::Fact(_) => ValueType::Flag,
        }
    }

    /// The value and its place in the answer, in words.
    pub fn described(&self) -> String {
        let pointer = &self.pointer;
        let mut words = vec![match &self.told {
            LearnKind::Id(pattern) => {
                format!("an id at {pointer:?} of the form {}", shown(pattern))
            }
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
        let mut told = match &self.told {
            LearnKind::Id(_) => LearntValue::Ids(Vec::new()),
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
            match (&self.told, &mut told) {
                (LearnKind::Id(pattern), LearntValue::Ids(ids)) if ids.len() < MAX_IDS => {
                    ids.extend(id(value, pattern));
                }
                (_, LearntValue::FirstNumber(sum) | LearntValue::Sum(sum)) => {
                    *sum = sum.saturating_add(value.as_u64().unwrap_or_default());
                }
                _ => {}
            }
        })?;
        Some(told).filter(|told| !matches!(told, LearntValue::FirstNumber(0)))
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
    let first = entries.filter(|(_, learn)| matches!(learn.told, LearnKind::FirstNumber));
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

fn id(value: &Value, pattern: &Regex) -> Option<String> {
    let found = pattern.captures(value.as_str()?)?;
    let id = found.get(1).or_else(|| found.get(0))?.as_str();
    // An id becomes a part of a path.
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
    ((1..=MAX_ID).contains(&id.len()) && id.bytes().all(plain)).then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn entries(text: &str) -> BTreeMap<String, Learn> {
        toml::from_str(text).unwrap()
    }

    /// The scope of a call after these answers.
    fn after(text: &str, answers: &[(u16, Value)]) -> CallScope {
        let mut scope = CallScope::node("home");
        let name = |template: &Template| Some(template.as_str().replace("{installation}", "home"));
        for (status, body) in answers {
            let body = body.to_string();
            let found = find(&entries(text), *status, body.as_bytes(), &name);
            keep(&mut scope, found);
        }
        scope
    }

    const LIST: &str = r#"
        machine = { status = 200, items = "/rows", where = { "/owner" = "{installation}", "/n" = "3" }, pointer = "/id", pattern = "[0-9a-f/]{8}" }
    "#;

    #[test]
    fn ids_of_a_list_fit_its_conditions_and_its_pattern() {
        let rows = json!({ "rows": [
            { "owner": "home", "n": 3, "id": "0000000a" },
            { "owner": "home", "n": "3", "id": "0000000a" },
            { "owner": "home", "n": 3, "id": "0000000b" },
            { "owner": "other", "n": 3, "id": "0000000c" },
            { "owner": "home", "id": "0000000d" },
            { "owner": "home", "n": 3, "id": "0000000e0" },
            { "owner": "home", "n": 3, "id": "000/000f" },
            { "owner": "home", "n": 3, "id": 5 },
            "none",
        ]});
        let scope = after(LIST, &[(200, rows.clone()), (200, json!("?")), (404, rows)]);
        let ids = scope.learnt.get("machine").unwrap();
        assert_eq!(ids, &["0000000a", "0000000b"]);
    }

    #[test]
    fn a_call_keeps_a_bounded_number_of_ids() {
        let rows: Vec<_> = (0..MAX_IDS + 10)
            .map(|n| json!({ "owner": "home", "n": 3, "id": format!("{n:08}") }))
            .collect();
        let scope = after(LIST, &[(200, json!({ "rows": rows }))]);
        assert_eq!(scope.learnt.get("machine").unwrap().len(), MAX_IDS);
    }

    #[test]
    fn an_id_may_be_a_group_of_its_pattern() {
        let text = r#"operation = { status = 202, pointer = "/operation", pattern = "/1\\.0/operations/([0-9a-f-]{4,36})(\\?.*)?" }"#;
        for (given, wanted) in [
            ("/1.0/operations/01-ab?project=x", Some("01-ab")),
            ("/1.0/operations/01-ab/cancel", None),
            ("/2.0/operations/01-ab", None),
        ] {
            let scope = after(text, &[(202, json!({ "operation": given }))]);
            let ids = scope.learnt.get("operation").unwrap();
            assert_eq!(ids.first().map(String::as_str), wanted);
        }
    }

    #[test]
    fn the_first_number_above_zero_counts() {
        let text = r#"memory = { status = 200, pointer = "/HostConfig/Memory", number = "first" }"#;
        let of = |memory: Value| (200, json!({ "HostConfig": { "Memory": memory } }));
        let answers = [
            of(json!(0)),
            of(json!("5")),
            of(json!(-1)),
            of(json!(7)),
            of(json!(9)),
        ];
        let scope = after(text, &answers);
        assert_eq!(scope.numbers.get("memory"), Some(&7));
        assert!(after(text, &answers[..3]).numbers.is_empty());
    }

    #[test]
    fn first_numbers_are_of_one_answer() {
        let text = r#"
            memory = { status = 200, pointer = "/Memory", number = "first" }
            quota = { status = 200, pointer = "/Quota", number = "first" }
        "#;
        let of = |memory: u64, quota: u64| (200, json!({ "Memory": memory, "Quota": quota }));
        let scope = after(
            text,
            &[of(1, 0), (200, json!({ "Quota": 2 })), of(3, 4), of(5, 6)],
        );
        let numbers: Vec<_> = scope.numbers.into_iter().collect();
        assert_eq!(numbers, [("memory".to_owned(), 3), ("quota".to_owned(), 4)]);
    }

    #[test]
    fn an_id_has_at_most_256_bytes() {
        let text = r#"id = { status = 200, pointer = "/a~1b/1", pattern = "a*" }"#;
        for (length, known) in [(0, 0), (256, 1), (257, 0)] {
            let answer = json!({ "a": 1, "a/b": ["x", "a".repeat(length)] });
            let scope = after(text, &[(200, answer)]);
            assert_eq!(scope.learnt.get("id").unwrap().len(), known, "{length}");
        }
    }

    #[test]
    fn an_incomplete_answer_tells_nothing() {
        let rows = br#"{ "rows": [{ "owner": "home", "n": 3, "id": "0000000a" }]"#;
        let name = |_: &Template| Some("home".to_owned());
        assert!(find(&entries(LIST), 200, rows, &name).is_empty());
    }

    #[test]
    fn a_list_under_two_equal_keys_tells_nothing() {
        let row = r#"[{ "owner": "home", "n": 3, "id": "0000000a" }]"#;
        let name = |_: &Template| Some("home".to_owned());
        let text = LIST.replace(r#", "/n" = "3""#, "");
        for other in [row, "[]", "5"] {
            let rows = format!(r#"{{ "rows": {row}, "a": 1, "rows": {other} }}"#);
            assert!(find(&entries(&text), 200, rows.as_bytes(), &name).is_empty());
        }
    }

    #[test]
    fn a_sum_is_of_the_positive_numbers_of_the_last_list() {
        let text = r#"image = { status = 200, items = "", sum = "/Size" }"#;
        let sizes = json!([{ "Size": 5 }, { "Size": -1 }, {}, { "Size": 7 }]);
        let scope = after(
            text,
            &[
                (200, json!([{ "Size": 1 }])),
                (200, sizes),
                (200, json!({})),
            ],
        );
        assert_eq!(scope.numbers.get("image"), Some(&12));
        let most = json!([{ "Size": u64::MAX }, { "Size": 1 }]);
        assert_eq!(
            after(text, &[(200, most)]).numbers.get("image"),
            Some(&u64::MAX)
        );
    }

    #[test]
    fn words_of_an_answer_are_a_fact() {
        let text = r#"no-limit = { status = [400, 500], says = ["Project Quota", "storage-opt"] }"#;
        for (status, body, said) in [
            (400, "use a PROJECT quota", true),
            (500, "--storage-opt is not supported", true),
            (201, "storage-opt", false),
            (500, "no space", false),
        ] {
            let scope = after(text, &[(status, json!({ "message": body }))]);
            assert_eq!(scope.facts.contains("no-limit"), said, "{body}");
        }
    }

    #[test]
    fn an_entry_has_one_kind_of_value_and_json_pointers() {
        for (entry, words) in [
            ("status = 200", "`says` for a fact"),
            (r#"status = 200, pointer = "/a""#, "`says` for a fact"),
            (
                r#"status = 200, pointer = "/a", pattern = "x", number = "first""#,
                "`says` for a fact",
            ),
            (r#"status = 200, sum = "/a""#, "`says` for a fact"),
            ("status = 200, says = []", "`says` for a fact"),
            (
                r#"status = 200, pointer = "a", pattern = "x""#,
                "\"a\" is not a JSON pointer",
            ),
            (
                r#"status = 200, pointer = "/a", pattern = "(""#,
                "not a pattern",
            ),
            (
                r#"status = 200, items = "/rows/0/ids", pointer = "", pattern = "x""#,
                "items: \"/rows/0/ids\" has a number",
            ),
            (
                r#"status = 200, pointer = "/a", pattern = "x", where = { "/b" = "c" }"#,
                "`where` needs `items`",
            ),
            (r#"status = 200, pointer = "/a", number = "last""#, "last"),
            (r#"status = "200", says = ["a"]"#, "a status, or a list"),
            (r#"status = 200, says = ["a"], more = 1"#, "more"),
        ] {
            let text = format!("x = {{ {entry} }}");
            let error = toml::from_str::<BTreeMap<String, Learn>>(&text)
                .unwrap_err()
                .to_string();
            assert!(error.contains(words), "{entry}: {error}");
        }
    }
}

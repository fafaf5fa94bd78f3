//! Ids that an engine tells in a call, for later requests of the call.

use super::document::{Learn, Rule};
use super::names::{self, Names};
use crate::message::Response;
use serde_json::Value;
use wharf_requests::CallScope;

/// The most ids of one name that a call keeps. A list has an id for each instance of the node.
const MAX_IDS: usize = 4096;

/// Ids by the name under which the policy uses them.
pub type Learnt = Vec<(String, Vec<String>)>;

/// The ids in an answer to a request of a rule.
pub fn ids(names: &Names<'_>, rule: &Rule, answer: &Response) -> Learnt {
    let wanted: Vec<_> = rule
        .learn
        .iter()
        .filter(|(_, learn)| learn.status == answer.status)
        .collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    let Ok(body) = serde_json::from_slice::<Value>(&answer.body) else {
        return Vec::new();
    };
    wanted
        .into_iter()
        .map(|(name, learn)| (name.clone(), learn.ids(names, &body)))
        .collect()
}

/// Keeps ids for the rest of the call.
pub fn keep(scope: &mut CallScope, learnt: Learnt) {
    for (name, ids) in learnt {
        let kept = scope.learnt.entry(name).or_default();
        for id in ids {
            if kept.len() < MAX_IDS && !kept.contains(&id) {
                kept.push(id);
            }
        }
    }
}

impl Learn {
    fn ids(&self, names: &Names<'_>, body: &Value) -> Vec<String> {
        let Some(pointer) = &self.items else {
            return self.id(body).into_iter().collect();
        };
        let items = body.pointer(pointer).and_then(Value::as_array);
        items
            .into_iter()
            .flatten()
            .filter(|item| self.is_met(names, item))
            .filter_map(|item| self.id(item))
            .collect()
    }

    fn is_met(&self, names: &Names<'_>, item: &Value) -> bool {
        self.conditions.iter().all(|(pointer, template)| {
            let given = item.pointer(pointer).map(names::text);
            given.is_some_and(|given| names.matches(template, &given).unwrap_or(false))
        })
    }

    fn id(&self, from: &Value) -> Option<String> {
        let text = from.pointer(&self.pointer)?.as_str()?;
        let found = self.pattern.captures(text)?;
        let id = found.get(1).or_else(|| found.get(0))?.as_str();
        // An id becomes a part of a path.
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
        (!id.is_empty() && id.bytes().all(plain)).then(|| id.to_owned())
    }
}

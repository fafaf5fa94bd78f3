//! The parts of a policy that need a second look, such as those left to the driver.

use super::document::{BodyRule, Document, QueryValue, Rule};
use super::publish;
use super::template::Template;
use http::Method;
use serde_json::Value;
use std::collections::BTreeSet;

/// Placeholders that tie a request to the instance of the call.
const OWN: &[&str] = &["instance", "mark"];

/// A sentence for each finding.
pub fn lint(document: &Document) -> Vec<String> {
    let mut findings = Vec::new();
    for (name, rule) in &document.request {
        let mut add = |what: String| findings.push(format!("request.{name}: {what}"));
        if rule.path.is_free() {
            add(format!(
                "the path {} leaves a part to the driver",
                rule.path
            ));
        }
        for (key, value) in &rule.query {
            match value {
                QueryValue::Text(template) if template.is_free() => {
                    add(format!("the query key {key:?} may have any value"));
                }
                QueryValue::Json { json } => open(json, "", &mut |place| {
                    add(format!(
                        "the query key {key:?} may have anything at {place}"
                    ));
                }),
                _ => {}
            }
        }
        if let BodyRule::Json(schema) = &rule.body {
            open(schema, "", &mut |place| {
                add(format!("the body may have anything at {place}"));
            });
        }
        let reads = matches!(rule.method, Method::GET | Method::HEAD);
        if !reads && !is_tied(document, rule) {
            add("nothing ties this change to the instance of the call".to_owned());
        }
        for (id, learn) in &rule.learn {
            if learn.items.is_some() && learn.conditions.is_empty() {
                add(format!("every item of the answer becomes {{learnt.{id}}}"));
            }
        }
    }
    for setting in unused(document) {
        findings.push(format!("settings.{setting}: no request uses it"));
    }
    findings
}

/// Calls `found` for each place of a schema that says nothing about its value.
fn open(schema: &Value, place: &str, found: &mut dyn FnMut(&str)) {
    const SAYS: [&str; 10] = [
        "const",
        "enum",
        "type",
        "properties",
        "patternProperties",
        "items",
        "anyOf",
        "oneOf",
        "each",
        "pattern",
    ];
    let here = || if place.is_empty() { "/" } else { place };
    match schema {
        Value::Bool(true) => found(here()),
        Value::Object(members) => {
            if !members.keys().any(|key| SAYS.contains(&key.as_str())) {
                found(here());
            }
            for (key, value) in members {
                let inner = |name: &str| format!("{place}/{name}");
                match (key.as_str(), value) {
                    ("properties" | "patternProperties", Value::Object(members)) => {
                        for (name, schema) in members {
                            open(schema, &inner(name), found);
                        }
                    }
                    ("anyOf" | "oneOf" | "allOf", Value::Array(items)) => {
                        for schema in items {
                            open(schema, place, found);
                        }
                    }
                    ("items", schema) => open(schema, &inner("*"), found),
                    ("additionalProperties", schema) => open(schema, &inner("*"), found),
                    ("of", schema) => open(schema, place, found),
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

/// Whether a request can only be about the instance of the call, or this installation's mark.
fn is_tied(document: &Document, rule: &Rule) -> bool {
    let mut names = BTreeSet::new();
    collect(rule, &mut names);
    let ties = |name: &str| match name.split_once('.') {
        Some(("learnt" | "network" | "public", _)) => true,
        // Elsewhere the ports are members of a list, which may be empty.
        Some(("published", _)) => rule.each.is_some(),
        _ => OWN.contains(&name),
    };
    names.iter().any(|name| match name.split_once('.') {
        Some(("name", own)) => document.names.get(own).is_some_and(|choice| {
            let mut names = choice.templates().iter().flat_map(Template::names);
            names.any(ties)
        }),
        _ => ties(name),
    })
}

fn collect(rule: &Rule, names: &mut BTreeSet<String>) {
    let mut add = |template: &Template| names.extend(template.names().map(str::to_owned));
    add(&rule.path);
    for value in rule.query.values() {
        match value {
            QueryValue::Text(template) => add(template),
            QueryValue::Json { json } => texts(json, &mut add),
            QueryValue::AtMost { .. } | QueryValue::Form { .. } => {}
        }
    }
    rule.headers.values().for_each(&mut add);
    for learn in rule.learn.values() {
        learn.conditions.values().for_each(&mut add);
    }
    if let BodyRule::Json(schema) = &rule.body {
        texts(schema, &mut add);
    }
}

fn texts(schema: &Value, add: &mut dyn FnMut(&Template)) {
    match schema {
        Value::String(text) => {
            if let Ok(template) = Template::parse(text) {
                add(&template);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| texts(item, add)),
        Value::Object(members) => {
            if let Some(Value::String(list)) = members.get("each")
                && let Ok(template) = Template::parse(&format!("{{{list}}}"))
            {
                add(&template);
            }
            members.values().for_each(|item| texts(item, add));
        }
        _ => {}
    }
}

fn unused(document: &Document) -> Vec<&String> {
    let mut used = BTreeSet::new();
    for rule in document.request.values() {
        collect(rule, &mut used);
    }
    for choice in document.names.values() {
        let names = choice.templates().iter().flat_map(Template::names);
        used.extend(names.map(str::to_owned));
    }
    if used.contains(publish::ADDRESS) {
        used.extend(publish::SETTINGS.map(|name| format!("settings.{name}")));
    }
    let is_used = |name: &&String| !used.contains(&format!("settings.{name}"));
    document.settings.keys().filter(is_used).collect()
}

//! A policy in words, for an operator who decides on it.

use super::document::{BodyRule, Calls, Document, QueryValue, Rule};
use super::{names, publish};
use http::Method;
use serde_json::Value;

/// Indentation of the details of a request.
const INDENT: &str = "      ";
/// The most lines of a body that are shown.
const MAX_BODY: usize = 60;

/// Says what a driver could do to a node.
pub fn explain(document: &Document) -> String {
    let mut text = String::new();
    let mut line = |words: &str| {
        text.push_str(words);
        text.push('\n');
    };
    line(&format!(
        "Engines of kind {:?}. {}",
        document.kind, document.about
    ));
    if document.in_process {
        line("The engine runs in Wharf's own process.");
    }
    let is_read = |rule: &Rule| matches!(rule.method, Method::GET | Method::HEAD);
    for (title, reads) in [
        ("The driver may read:", true),
        ("The driver may change:", false),
    ] {
        let rules: Vec<_> = document
            .request
            .iter()
            .filter(|(_, rule)| is_read(rule) == reads)
            .collect();
        if rules.is_empty() {
            continue;
        }
        line("");
        line(title);
        for (name, rule) in rules {
            describe(name, rule).iter().for_each(|words| line(words));
        }
    }
    if !document.transfer.is_empty() {
        line("");
        line("The driver may copy:");
        for (name, rule) in &document.transfer {
            line(&format!("  {name}: {}", rule.about));
            line(&format!("{INDENT}from {} to {}", rule.read, rule.write));
        }
    }
    if !document.names.is_empty() {
        line("");
        line("Names:");
        for (name, choice) in &document.names {
            let templates: Vec<_> = choice.templates().iter().map(ToString::to_string).collect();
            line(&format!("  {{name.{name}}} is {}", templates.join(" or ")));
        }
    }
    if publish::has_addresses(document) {
        line("");
        line("Addresses of published ports:");
        for (name, words) in names::PAIR
            .iter()
            .filter(|(name, _)| *name == publish::ADDRESS)
        {
            line(&format!("  {{{name}}} is {words}"));
        }
    }
    if !document.settings.is_empty() {
        line("");
        line("Settings of a node that bind the driver:");
        for (name, setting) in &document.settings {
            let default = match &setting.default {
                Some(default) => format!("default {default}"),
                None => "required".to_owned(),
            };
            line(&format!("  {name}: {} ({default})", setting.about));
        }
    }
    text
}

/// The lines about one request.
fn describe(name: &str, rule: &Rule) -> Vec<String> {
    let query = rule.query.iter().map(|(key, value)| match value {
        QueryValue::Text(template) => format!("{key}={template}"),
        QueryValue::AtMost { max } => format!("{key}=0…{max}"),
        QueryValue::Form { pattern } => format!("{key}={pattern}"),
        QueryValue::Json { .. } => format!("{key}=JSON"),
    });
    let query = query.collect::<Vec<_>>().join("&");
    let mark = if query.is_empty() { "" } else { "?" };
    let mut details = vec![format!("{} {}{mark}{query}", rule.method, rule.path)];
    if let Some(calls) = rule.calls {
        details.push(format!("only in {}", called(calls)));
    }
    if rule.each.is_some() {
        details.push("for one of the instance's published ports, the same in all parts".to_owned());
    }
    if rule.job {
        details.push("as a long request, which outlasts a call".to_owned());
    }
    for (name, value) in &rule.headers {
        details.push(format!("the host adds {name}: {value}"));
    }
    match &rule.body {
        BodyRule::None => {}
        BodyRule::Archive => details.push("with an archive of the blueprint's files".to_owned()),
        BodyRule::File => details.push("with one file of the blueprint".to_owned()),
        BodyRule::Json(schema) => {
            details.push("with a body of:".to_owned());
            let mut lines = Vec::new();
            members("", schema, 1, &mut lines);
            let more = lines.len().saturating_sub(MAX_BODY);
            lines.truncate(MAX_BODY);
            details.extend(lines);
            if more > 0 {
                details.push(format!("  and {more} more lines in the file"));
            }
        }
    }
    for (id, learn) in &rule.learn {
        details.push(format!("its answer {} tells {{learnt.{id}}}", learn.status));
    }
    let details = details.into_iter().map(|line| format!("{INDENT}{line}"));
    [format!("  {name}: {}", rule.about)]
        .into_iter()
        .chain(details)
        .collect()
}

fn called(calls: Calls) -> &'static str {
    match calls {
        Calls::Node => "calls about the whole node",
        Calls::Survey => "the survey of the node",
        Calls::Mark => "the call that marks the engine's store",
        Calls::Instance => "calls about one instance",
        Calls::Change => "calls that change one instance",
        Calls::Create => "the call that creates the instance",
        Calls::Move => "the call that moves the instance to this node",
    }
}

/// Adds a line for each member of a body.
fn members(name: &str, schema: &Value, depth: usize, lines: &mut Vec<String>) {
    let indent = "  ".repeat(depth);
    let label = if name.is_empty() { "the body" } else { name };
    let Value::Object(keywords) = schema else {
        let any = *schema == Value::Bool(true);
        let value = if any { "anything" } else { "nothing" };
        lines.push(format!("{indent}{label}: {value}"));
        return;
    };
    if let (Some(Value::String(list)), Some(of)) = (keywords.get("each"), keywords.get("of")) {
        lines.push(format!("{indent}{label}: for one of {{{list}}}"));
        return members("with", of, depth.saturating_add(1), lines);
    }
    let mut inner = Vec::new();
    for key in ["properties", "patternProperties"] {
        let required = keywords.get("required").and_then(Value::as_array);
        for (member, schema) in keywords
            .get(key)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            let optional = key == "patternProperties"
                || required.is_some_and(|list| !list.iter().any(|name| name == member));
            let shown = match (key, optional) {
                ("patternProperties", _) => format!("any {member}"),
                (_, true) => format!("{member} (optional)"),
                (_, false) => member.clone(),
            };
            inner.push((shown, schema));
        }
    }
    for (key, shown) in [
        ("additionalProperties", "any other"),
        ("items", "each item"),
        ("contains", "at least one item"),
    ] {
        let is_closed = |schema: &&Value| key == "additionalProperties" && **schema == false;
        let schema = keywords.get(key).filter(|schema| !is_closed(schema));
        inner.extend(schema.map(|schema| (shown.to_owned(), schema)));
    }
    for (key, shown) in [("anyOf", "choice"), ("oneOf", "choice"), ("allOf", "rule")] {
        let schemas = keywords.get(key).and_then(Value::as_array);
        let numbered = schemas.into_iter().flatten().zip(1..);
        inner.extend(numbered.map(|(schema, n)| (format!("{shown} {n}"), schema)));
    }
    if inner.is_empty() {
        let value = value(keywords).unwrap_or_else(|| "anything".to_owned());
        lines.push(format!("{indent}{label}: {value}"));
        return;
    }
    let mut depth = depth;
    let value = value(keywords);
    if !name.is_empty() || value.is_some() {
        let value = value.map_or_else(String::new, |value| format!(" {value}"));
        lines.push(format!("{indent}{label}:{value}"));
        depth = depth.saturating_add(1);
    }
    for (member, schema) in inner {
        members(&member, schema, depth, lines);
    }
}

/// The keywords that hold schemas, which have lines of their own, or words about those lines.
const NESTED: [&str; 8] = [
    "additionalProperties",
    "allOf",
    "anyOf",
    "contains",
    "items",
    "oneOf",
    "patternProperties",
    "properties",
];

/// The permitted value, in words. None if the keywords say nothing about it.
fn value(keywords: &serde_json::Map<String, Value>) -> Option<String> {
    let plain = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    if let Some(wanted) = keywords.get("const") {
        return Some(plain(wanted));
    }
    if let Some(wanted) = keywords.get("enum") {
        return Some(format!("one of {}", plain(wanted)));
    }
    let is_said = |key: &str| {
        key == "description"
            || NESTED.contains(&key)
            || (key == "required" && keywords.contains_key("properties"))
    };
    let mut words: Vec<_> = keywords
        .iter()
        .filter(|(key, _)| !is_said(key))
        .map(|(key, value)| match key.as_str() {
            "type" => plain(value),
            _ => format!("{key} {}", plain(value)),
        })
        .collect();
    words.sort();
    (!words.is_empty()).then(|| words.join(", "))
}

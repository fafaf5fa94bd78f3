//! JSON Schema of bodies, with placeholders. Objects are closed, and all their members are required
//! unless the schema says otherwise, so that a short schema is a strict one.

use super::document::Document;
use super::names::{self, Names};
use super::template::Template;
use crate::policy::Refusal;
use serde_json::{Map, Value, json};

/// Keywords that the schemas of a policy may use. An unknown keyword would be ignored, and its object
/// left open.
const KEYWORDS: &[&str] = &[
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "description",
    "each",
    "enum",
    "items",
    "maxItems",
    "maxLength",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "oneOf",
    "of",
    "pattern",
    "patternProperties",
    "properties",
    "required",
    "type",
    "uniqueItems",
];
/// Keywords whose texts are templates.
const BOUND: &[&str] = &["const", "enum", "minimum", "maximum"];

/// Checks a schema of a policy file, within the `each` of its request. An error names the place in it.
pub fn check(document: &Document, schema: &Value, each: Option<String>) -> Result<(), String> {
    let context = names::Context {
        each,
        ..names::Context::default()
    };
    check_at(document, schema, &context, "")?;
    // The shape is checked without this format's own keywords.
    jsonschema::draft202012::meta::validate(&shape(schema))
        .map_err(|error| format!("{}: {error}", error.instance_path().as_str()))
}

fn check_at(
    document: &Document,
    schema: &Value,
    context: &names::Context,
    place: &str,
) -> Result<(), String> {
    let members = match schema {
        Value::Bool(_) => return Ok(()),
        Value::Object(members) => members,
        _ => return Err(format!("{place}: must be a schema, which is a table")),
    };
    if let Some(unknown) = members.keys().find(|key| !KEYWORDS.contains(&key.as_str())) {
        return Err(format!(
            "{place}: {unknown:?} is not a keyword here; those are {}",
            KEYWORDS.join(", ")
        ));
    }
    for key in BOUND {
        if let Some(value) = members.get(*key) {
            check_bound(document, value, context).map_err(|why| format!("{place}/{key}: {why}"))?;
        }
    }
    let mut inner = context.clone();
    match (members.get("each"), members.get("of")) {
        (None, None) => {}
        (Some(Value::String(list)), Some(_)) if members.len() == 2 => {
            if !names::is_list(document, list) {
                return Err(format!("{place}/each: {list:?} is not a list"));
            }
            inner.each = Some(list.clone());
        }
        _ => {
            return Err(format!(
                "{place}: `each` names a list and stands with `of` alone"
            ));
        }
    }
    for (part, schema) in parts(members) {
        check_at(document, schema, &inner, &format!("{place}/{part}"))?;
    }
    Ok(())
}

fn check_bound(document: &Document, value: &Value, context: &names::Context) -> Result<(), String> {
    match value {
        Value::String(text) => names::check(document, &Template::parse(text)?, context),
        Value::Array(items) => items
            .iter()
            .try_for_each(|item| check_bound(document, item, context)),
        Value::Object(members) => members
            .values()
            .try_for_each(|item| check_bound(document, item, context)),
        _ => Ok(()),
    }
}

/// The schemas within a schema, with their places.
fn parts(members: &Map<String, Value>) -> Vec<(String, &Value)> {
    let mut parts = Vec::new();
    for (key, value) in members {
        match (key.as_str(), value) {
            ("properties" | "patternProperties", Value::Object(members)) => parts.extend(
                members
                    .iter()
                    .map(|(name, schema)| (format!("{key}/{name}"), schema)),
            ),
            ("anyOf" | "allOf" | "oneOf", Value::Array(items)) => parts.extend(
                items
                    .iter()
                    .enumerate()
                    .map(|(at, schema)| (format!("{key}/{at}"), schema)),
            ),
            ("items" | "contains" | "additionalProperties" | "of", schema) => {
                parts.push((key.clone(), schema));
            }
            _ => {}
        }
    }
    parts
}

/// The schema with values in place of templates, as far as that matters for its shape.
fn shape(schema: &Value) -> Value {
    rewrite(
        schema,
        &mut |key, value| {
            Ok::<_, Refusal>(match key {
                "enum" if value.is_string() => json!([value]),
                "minimum" | "maximum" if value.is_string() => json!(0),
                _ => value.clone(),
            })
        },
        &mut |_, of| Ok(shape(of)),
    )
    .unwrap_or(Value::Null)
}

/// The schema for one call.
pub fn bind(schema: &Value, names: &Names<'_>) -> Result<Value, Refusal> {
    let mut bound = |key: &str, value: &Value| bind_value(key, value, names);
    let mut each = |list: &str, of: &Value| {
        let mut choices = Vec::new();
        for member in names.each(list)? {
            choices.push(bind(of, &names.with(member))?);
        }
        Ok(match choices.is_empty() {
            true => Value::Bool(false),
            false => json!({ "anyOf": choices }),
        })
    };
    rewrite(schema, &mut bound, &mut each)
}

/// Rewrites the keywords with templates, resolves `each`, and closes the objects.
fn rewrite<E>(
    schema: &Value,
    bound: &mut dyn FnMut(&str, &Value) -> Result<Value, E>,
    each: &mut dyn FnMut(&str, &Value) -> Result<Value, E>,
) -> Result<Value, E> {
    let Value::Object(members) = schema else {
        return Ok(schema.clone());
    };
    if let (Some(Value::String(list)), Some(of)) = (members.get("each"), members.get("of")) {
        return each(list, of);
    }
    let mut rewritten = Map::new();
    for (key, value) in members {
        let value = match (key.as_str(), value) {
            ("properties" | "patternProperties", Value::Object(members)) => {
                let mut all = Map::new();
                for (name, schema) in members {
                    all.insert(name.clone(), rewrite(schema, bound, each)?);
                }
                Value::Object(all)
            }
            ("anyOf" | "allOf" | "oneOf", Value::Array(items)) => Value::Array(
                items
                    .iter()
                    .map(|schema| rewrite(schema, bound, each))
                    .collect::<Result<_, _>>()?,
            ),
            ("items" | "contains" | "additionalProperties", schema) => {
                rewrite(schema, bound, each)?
            }
            (key, value) if BOUND.contains(&key) => {
                let value = bound(key, value)?;
                // A constant with several values is a choice.
                if let ("const", Value::Array(choices)) = (key, &value)
                    && members.get("const").is_some_and(Value::is_string)
                {
                    rewritten.insert("enum".to_owned(), Value::Array(choices.clone()));
                    continue;
                }
                value
            }
            (_, value) => value.clone(),
        };
        rewritten.insert(key.clone(), value);
    }
    close(&mut rewritten);
    Ok(Value::Object(rewritten))
}

fn close(schema: &mut Map<String, Value>) {
    let named = schema.get("properties").and_then(Value::as_object);
    if named.is_none() && !schema.contains_key("patternProperties") {
        return;
    }
    let all: Vec<_> = named.into_iter().flat_map(Map::keys).cloned().collect();
    let defaults = [
        ("type", json!("object")),
        ("additionalProperties", json!(false)),
        ("required", json!(all)),
    ];
    for (key, value) in defaults {
        schema.entry(key).or_insert(value);
    }
}

fn bind_value(key: &str, value: &Value, names: &Names<'_>) -> Result<Value, Refusal> {
    let expand = |text: &str| {
        let template = Template::parse(text).map_err(Refusal::new)?;
        names.expand(&template)
    };
    match (key, value) {
        ("enum", Value::String(text)) => expand(text).map(Value::Array),
        ("enum", Value::Array(items)) => {
            let mut all = Vec::new();
            for item in items {
                match item {
                    Value::String(text) => all.extend(expand(text)?),
                    other => all.push(other.clone()),
                }
            }
            Ok(Value::Array(all))
        }
        (_, Value::String(text)) => {
            let mut values = expand(text)?;
            match values.len() {
                1 => Ok(values.remove(0)),
                _ => Ok(Value::Array(values)),
            }
        }
        ("const", Value::Array(items)) => {
            // A list in the array is as long as it is.
            let mut all = Vec::new();
            for item in items {
                match item {
                    Value::String(text) => all.extend(expand(text)?),
                    other => all.push(bind_value("const", other, names)?),
                }
            }
            Ok(Value::Array(all))
        }
        ("const", Value::Object(members)) => members
            .iter()
            .map(|(key, item)| Ok((key.clone(), bind_value("const", item, names)?)))
            .collect::<Result<Map<_, _>, Refusal>>()
            .map(Value::Object),
        (_, other) => Ok(other.clone()),
    }
}

/// Checks a body against a schema of a policy, in one call.
pub fn validate(schema: &Value, body: &Value, names: &Names<'_>) -> Result<(), Refusal> {
    let schema = bind(schema, names)?;
    let validator = jsonschema::draft202012::new(&schema)
        .map_err(|error| Refusal::new(format!("the policy's schema: {error}")))?;
    validator.validate(body).map_err(|error| {
        let place = error.instance_path().as_str();
        let place = place.trim_start_matches('/').replace('/', ".");
        let place = if place.is_empty() { "the body" } else { &place };
        Refusal::new(format!("{place}: {error}"))
    })
}

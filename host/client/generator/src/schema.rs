//! Schemas of the document in the form that `typify` converts.
//!
//! The document is OpenAPI 3.1, whose schemas are JSON Schema 2020-12; `typify` reads draft 7. Bounds
//! and patterns are left out, because the server checks them and tells what would be right. A client
//! also accepts fields that it does not know.

use serde_json::{Map, Value, json};

const COMPONENT: &str = "#/components/schemas/";
/// Keywords that become part of the types.
const KEPT: [&str; 12] = [
    "$ref",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "description",
    "enum",
    "format",
    "items",
    "oneOf",
    "required",
    "type",
];
/// The definition of a secret text, a type of the crate.
pub const SECRET: &str = "Secret";

/// An enumeration of the document: its values and its name.
pub type Enumeration = (Vec<Value>, String);

/// The enumerations among the components.
pub fn enumerations(schemas: &Map<String, Value>) -> Vec<Enumeration> {
    let of = |(name, schema): (&String, &Value)| Some((values(schema)?, name.clone()));
    schemas.iter().filter_map(of).collect()
}

fn values(schema: &Value) -> Option<Vec<Value>> {
    let values = schema["enum"].as_array()?.iter();
    Some(values.filter(|value| !value.is_null()).cloned().collect())
}

/// Converts a schema.
pub fn simplify(schema: &Value, known: &[Enumeration], is_top: bool) -> Value {
    let Some(map) = schema.as_object() else {
        return schema.clone();
    };
    let is_nullable = is_nullable(schema);
    if let Some((_, name)) = known
        .iter()
        .find(|(all, _)| !is_top && values(schema).as_ref() == Some(all))
    {
        return reference(name, schema, is_nullable);
    }
    if map.get("format") == Some(&json!("password")) {
        return reference(SECRET, schema, is_nullable);
    }
    let inner = |value: &Value| simplify(value, known, false);
    let mut simple = Map::new();
    for (key, value) in map {
        let converted = match key.as_str() {
            "properties" => map_values(value, inner),
            "$ref" => json!(
                value
                    .as_str()
                    .unwrap_or_default()
                    .replace(COMPONENT, "#/definitions/")
            ),
            "additionalProperties" if value.is_boolean() => continue,
            "items" | "additionalProperties" => inner(value),
            "allOf" | "oneOf" | "anyOf" => {
                value.as_array().into_iter().flatten().map(inner).collect()
            }
            "const" => {
                simple.insert("enum".to_owned(), json!([value]));
                continue;
            }
            "format" => continue,
            key if KEPT.contains(&key) => value.clone(),
            _ => continue,
        };
        simple.insert(key.clone(), converted);
    }
    if let Some(format) = integer_format(schema) {
        simple.insert("format".to_owned(), json!(format));
    }
    Value::Object(simple)
}

fn is_nullable(schema: &Value) -> bool {
    let has_null =
        |list: &Value, null: Value| list.as_array().is_some_and(|list| list.contains(&null));
    has_null(&schema["type"], json!("null")) || has_null(&schema["enum"], Value::Null)
}

/// A reference that keeps the description.
fn reference(name: &str, schema: &Value, is_nullable: bool) -> Value {
    let reference = json!({ "$ref": format!("#/definitions/{name}") });
    let mut schema = json!({ "description": schema["description"] });
    if is_nullable {
        schema["oneOf"] = json!([reference, { "type": "null" }]);
    } else {
        schema["allOf"] = json!([reference]);
    }
    if schema["description"].is_null()
        && let Some(map) = schema.as_object_mut()
    {
        map.remove("description");
    }
    schema
}

fn map_values(value: &Value, convert: impl Fn(&Value) -> Value) -> Value {
    let entries = value.as_object().into_iter().flatten();
    Value::Object(
        entries
            .map(|(key, value)| (key.clone(), convert(value)))
            .collect(),
    )
}

/// The width of an integer: the bounds of its schema are the reason for the type of its field.
fn integer_format(schema: &Value) -> Option<&'static str> {
    let kind = &schema["type"];
    let is_integer = kind == "integer"
        || kind
            .as_array()
            .is_some_and(|kinds| kinds.contains(&json!("integer")));
    let is_unsigned = schema["minimum"]
        .as_i64()
        .is_some_and(|minimum| minimum >= 0);
    match (is_integer, is_unsigned, schema["maximum"].as_u64()) {
        (false, _, _) => None,
        (true, true, Some(maximum)) if maximum <= u64::from(u16::MAX) && maximum > 4096 => {
            Some("uint16")
        }
        (true, true, _) => Some("uint64"),
        (true, false, _) => Some("int64"),
    }
}

#[cfg(test)]
mod tests {
    use super::{enumerations, simplify};
    use serde_json::json;

    #[test]
    fn schemas_lose_what_the_server_checks_and_keep_their_types() {
        let all = json!({ "Tier": { "type": "string", "enum": ["a", "b"] } });
        let known = enumerations(all.as_object().unwrap());
        let simple = |schema| simplify(&schema, &known, false);
        assert_eq!(
            simple(json!({ "type": ["string", "null"], "enum": ["a", "b", null], "default": "a" })),
            json!({ "oneOf": [{ "$ref": "#/definitions/Tier" }, { "type": "null" }] })
        );
        assert_eq!(
            simple(json!({ "type": "string", "format": "password", "minLength": 1 })),
            json!({ "allOf": [{ "$ref": "#/definitions/Secret" }] })
        );
        assert_eq!(
            simple(
                json!({ "type": "object", "additionalProperties": false, "unevaluatedProperties": false,
                "properties": { "format": { "type": "integer", "minimum": 1, "maximum": 65535 } } })
            ),
            json!({ "type": "object", "properties": { "format": { "type": "integer", "format": "uint16" } } })
        );
        assert_eq!(
            simple(json!({ "$ref": "#/components/schemas/Tier" })),
            json!({ "$ref": "#/definitions/Tier" })
        );
    }
}

use super::{CheckedBody, RequestSchema, Schemas};
use serde_json::{Value, json};

fn check(schema: &RequestSchema, value: &Value) -> CheckedBody {
    schema.check(value.to_string().as_bytes()).unwrap()
}

fn errors(schema: &RequestSchema, value: &Value) -> Value {
    json!(check(schema, value).errors.0)
}

fn good() -> Value {
    json!({ "resource_type": "vm", "n_vcpus": 1, "mem_gib": 512, "disk_size_gib": 10 })
}

fn with(field: &str, value: Value) -> Value {
    let mut body = good();
    body[field] = value;
    body
}

#[test]
fn all_wrong_fields_at_once() {
    let schemas = Schemas::compile().unwrap();
    let body = json!({
        "resource_type": "pod",
        "n_vcpus": 0,
        "mem_gib": "4",
        "name": 7,
        "flavor": "",
        "cpu_tier": true,
        "s3_access_key_id": "a b",
        "state": "running",
        "colour": "blue",
    });
    assert_eq!(
        errors(&schemas.create, &body),
        json!({
            "resource_type": ["must be one of: vm, container"],
            "n_vcpus": ["must be between 1 and 256"],
            "mem_gib": ["must be an integer"],
            "disk_size_gib": ["required"],
            "name": ["must be a string"],
            "flavor": ["must not be empty"],
            "cpu_tier": ["must be one of: general-purpose, high-performance"],
            "s3_access_key_id": ["must be printable ASCII without spaces"],
            "state": ["read-only"],
            "colour": ["unknown field"],
        })
    );
}

#[test]
fn an_item_is_reported_on_its_field() {
    let schemas = Schemas::compile().unwrap();
    let rule = "must be at most 8 objects with the fields volume, path and, if wanted, read_only; \
                a path is absolute and has no spaces, such as /data/genome";
    let one = |volume: Value| with("volumes", json!([volume]));
    for wrong in [
        one(json!({ "volume": "genome" })),
        one(json!({ "volume": 7, "path": "/data" })),
        one(json!({ "volume": "genome", "path": "data" })),
        one(json!({ "volume": "genome", "path": "/data/../etc" })),
        one(json!({ "volume": "genome", "path": "/data/" })),
        one(json!({ "volume": "genome", "path": "/data", "readonly": true })),
        one(json!("genome")),
        with(
            "volumes",
            json!(vec![json!({ "volume": "a", "path": "/a" }); 9]),
        ),
    ] {
        assert_eq!(
            errors(&schemas.create, &wrong),
            json!({ "volumes": [rule] }),
            "{wrong}"
        );
    }
    let right = json!({ "volume": "genome", "path": "/home/user/.data", "read_only": null });
    assert_eq!(errors(&schemas.create, &one(right)), json!({}));
    assert_eq!(
        errors(&schemas.create, &with("volumes", json!({}))),
        json!({ "volumes": ["must be an array"] })
    );
    assert_eq!(
        errors(&schemas.create, &with("volume", json!("genome"))),
        json!({ "volume": ["unknown field; did you mean `volumes`?"] })
    );
}

#[test]
fn integers() {
    let schemas = Schemas::compile().unwrap();
    for (value, expected) in [
        (json!(4), Ok(4)),
        (json!(4.0), Ok(4)),
        (json!(1e2), Ok(100)),
        (json!(256), Ok(256)),
        (json!(257), Err("must be between 1 and 256")),
        (json!(-1), Err("must be between 1 and 256")),
        (json!(1e300), Err("must be between 1 and 256")),
        (json!(u64::MAX), Err("must be between 1 and 256")),
        (json!(4.5), Err("must be an integer")),
        (json!("4"), Err("must be an integer")),
        (json!(true), Err("must be an integer")),
        (json!([4]), Err("must be an integer")),
        (json!({ "n": 4 }), Err("must be an integer")),
        (json!(null), Err("must be an integer")),
    ] {
        let checked = check(&schemas.create, &with("n_vcpus", value.clone()));
        match expected {
            Ok(n) => {
                assert_eq!(checked.integer("n_vcpus"), Some(n), "{value}");
                assert!(checked.errors.0.is_empty(), "{value}");
            }
            Err(message) => {
                assert_eq!(checked.integer("n_vcpus"), None, "{value}");
                assert_eq!(checked.errors.0["n_vcpus"], [message], "{value}");
            }
        }
    }
}

#[test]
fn null_is_absent_where_optional() {
    let schemas = Schemas::compile().unwrap();
    let checked = check(&schemas.create, &with("name", json!(null)));
    assert!(checked.errors.0.is_empty() && !checked.given("name"));
    let all_null = json!({ "name": null, "n_vcpus": null, "mem_gib": null, "disk_size_gib": null });
    assert_eq!(errors(&schemas.update, &all_null), json!({}));
    assert_eq!(errors(&schemas.update, &json!({})), json!({}));
}

#[test]
fn repeated_keys_and_nested_values() {
    let schemas = Schemas::compile().unwrap();
    let body = br#"{"port": 1, "port": 2}"#;
    assert_eq!(
        schemas.port.check(body).unwrap().errors.0["port"],
        ["given more than once"]
    );
    assert_eq!(
        errors(&schemas.port, &json!({ "port": { "a/b": [1] }, "a/b": 1 })),
        json!({ "port": ["must be an integer"], "a/b": ["unknown field"] })
    );
    assert_eq!(
        errors(&schemas.port, &json!({ "port": 0 })),
        json!({ "port": ["must be between 1 and 65535"] })
    );
}

#[test]
fn fields_that_an_update_cannot_set_are_read_only() {
    let schemas = Schemas::compile().unwrap();
    assert_eq!(
        errors(
            &schemas.update,
            &json!({ "flavor": "base", "uuid": "x", "public_key": "k", "x": 1 })
        ),
        json!({
            "flavor": ["read-only"],
            "uuid": ["read-only"],
            "public_key": ["read-only"],
            "x": ["unknown field"],
        })
    );
}

/// Every example in the document is valid by its schema.
#[test]
fn examples_are_valid() {
    fn visit(value: &Value, document: &Value, count: &mut usize) {
        let Some(map) = value.as_object() else {
            if let Some(items) = value.as_array() {
                items.iter().for_each(|item| visit(item, document, count));
            }
            return;
        };
        if let (Some(Value::Object(schema)), Some(Value::Object(examples))) =
            (map.get("schema"), map.get("examples"))
        {
            let mut root = json!({ "components": document["components"], "allOf": [schema] });
            root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
            let validator = jsonschema::draft202012::options()
                .should_validate_formats(true)
                .build(&root)
                .unwrap();
            for (name, example) in examples {
                let example = match example.get("$ref").and_then(Value::as_str) {
                    Some(r) => document.pointer(&r[1..]).unwrap(),
                    None => example,
                };
                let problems: Vec<String> = validator
                    .iter_errors(&example["value"])
                    .map(|e| e.to_string())
                    .collect();
                assert!(problems.is_empty(), "example {name}: {problems:?}");
                *count += 1;
            }
        }
        map.values().for_each(|inner| visit(inner, document, count));
    }
    let document: Value = serde_json::from_str(wharf_client::DOCUMENT).unwrap();
    let mut count = 0;
    visit(&document, &document, &mut count);
    assert!(count >= 20, "{count}");
}

/// A body has a name in the document, which clients and messages use.
#[test]
fn every_body_refers_to_a_component() {
    fn visit(value: &Value, document: &Value, count: &mut usize) {
        let items = value.as_array().into_iter().flatten();
        let fields = value.as_object().into_iter().flatten();
        if let Some(schema) = value.pointer("/application~1json/schema") {
            let reference = schema["$ref"].as_str().unwrap_or_default();
            assert!(reference.starts_with("#/components/schemas/"), "{schema}");
            assert!(document.pointer(&reference[1..]).is_some(), "{reference}");
            *count += 1;
        }
        items
            .chain(fields.map(|(_, value)| value))
            .for_each(|inner| visit(inner, document, count));
    }
    let document: Value = serde_json::from_str(wharf_client::DOCUMENT).unwrap();
    let mut count = 0;
    visit(&document, &document, &mut count);
    assert!(count >= 100, "{count}");
}

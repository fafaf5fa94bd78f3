//! Proof that the JSON Schemas and the parsers accept equal inputs.
//!
//! A schema cannot check the bytes inside a public key, or an IPv6 address between the brackets of a
//! URL. Only these may be refused by a parser alone.

use super::{create, ports, public_key, s3_url, update};
use crate::schema::{ApiDocument, Schemas};
use jsonschema::Validator;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::sync::LazyLock;
use wharf_domain::draft::Field;
use wharf_domain::name::Name;

static SCHEMAS: LazyLock<Schemas> = LazyLock::new(|| Schemas::compile().unwrap());
static CREATE: LazyLock<Value> = LazyLock::new(|| schema("CreateRequest"));
static CREATE_WHOLE: LazyLock<Validator> = LazyLock::new(|| validator(&CREATE));
static UPDATE_WHOLE: LazyLock<Validator> = LazyLock::new(|| validator(&schema("UpdateRequest")));
static PORT_WHOLE: LazyLock<Validator> = LazyLock::new(|| validator(&schema("PortRequest")));

const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFIkGWuBbBTx9nTEHwsrBJV4jF7lFQyMDmE6pDnoO4Yg";

fn schema(component: &str) -> Value {
    ApiDocument::read().unwrap().schema(component).unwrap()
}

fn validator(schema: &Value) -> Validator {
    jsonschema::draft202012::new(schema).unwrap()
}

/// The schema of one field of a create request, by itself.
fn field_schema(field: &str) -> Validator {
    let mut root = CREATE.clone();
    let property = root["properties"][field].take();
    validator(&json!({ "components": root["components"], "allOf": [property] }))
}

/// Any JSON value that is no object with fields.
fn anything() -> BoxedStrategy<Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        Just(json!([])),
        Just(json!([1])),
        Just(json!({})),
    ]
    .boxed()
}

/// Numbers about the bounds, whole and not, as integers and as floats.
fn number() -> BoxedStrategy<Value> {
    let near = prop_oneof![
        -2_i32..20,
        250_i32..260,
        505_i32..520,
        1990_i32..2010,
        65_530_i32..65_540
    ];
    prop_oneof![
        8 => (near, 0..3).prop_map(|(n, form)| match form {
            0 => json!(n),
            1 => json!(f64::from(n)),
            _ => json!(f64::from(n) + 0.5),
        }),
        1 => Just(json!(4_294_967_297_u64)),
        1 => Just(json!(1e300)),
        1 => anything(),
    ]
    .boxed()
}

fn name() -> BoxedStrategy<Value> {
    let text = prop_oneof![
        6 => "[a-z0-9-]{0,8}",
        2 => "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?",
        1 => "[a-z0-9-]{60,66}",
        1 => "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
        1 => "[0-9A-F]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
        1 => "[a-zA-Z_.é\n -]{1,4}",
    ];
    prop_oneof![9 => text.prop_map(Value::from), 1 => anything()].boxed()
}

fn url() -> BoxedStrategy<String> {
    let scheme = prop_oneof![6 => "https?", 1 => "[Hh][Tt][Tt][Pp][Ss]?", 1 => "ftp|//|htt"];
    let host = prop_oneof![
        6 => "[a-zA-Z0-9][a-zA-Z0-9._-]{0,8}",
        1 => "\\[[0-9a-f:.]{1,8}\\]",
        1 => Just("[fd00::1]".to_owned()),
        1 => "[ -~é]{0,6}",
        1 => "[a-z]{1,3}:[a-z]{1,3}@[a-z]{1,3}",
    ];
    let port = prop_oneof![4 => "", 3 => ":[0-9]{0,6}", 1 => ":6553[0-9]", 1 => ":[ -~]{1,3}"];
    let path = prop_oneof![3 => "", 3 => "/[a-zA-Z0-9._~/-]{0,8}", 2 => "[ -~é\t]{0,4}"];
    (scheme, host, port, path)
        .prop_map(|(scheme, host, port, path)| format!("{scheme}://{host}{port}{path}"))
        .boxed()
}

fn key() -> BoxedStrategy<String> {
    let space = || prop_oneof![6 => Just(" ".to_owned()), 1 => "[ \t\n\u{3000}\u{a0}]{0,3}"];
    let around = || prop_oneof![6 => Just(String::new()), 1 => "[ \t\n\r\u{3000}x]{0,2}"];
    let comment =
        prop_oneof![3 => "", 2 => " [ -~é]{0,9}", 1 => "[ -~\u{0}-\u{1f}\u{7f}-\u{9f}]{0,3}"];
    let (algorithm, data) = KEY.split_once(' ').unwrap();
    let algorithm = prop_oneof![8 => Just(algorithm.to_owned()), 1 => "ssh-(rsa|dss|ed25519)"];
    let data = prop_oneof![8 => Just(data.to_owned()), 1 => "[A-Za-z0-9+/]{0,20}={0,3}"];
    (around(), algorithm, space(), data, comment, around())
        .prop_map(|(before, algorithm, space, data, comment, after)| {
            format!("{before}{algorithm}{space}{data}{comment}{after}")
        })
        .boxed()
}

fn text(good: &'static str) -> BoxedStrategy<Value> {
    prop_oneof![5 => good.prop_map(Value::from), 1 => anything()].boxed()
}

/// A field that is there or not.
fn maybe(
    name: &'static str,
    value: BoxedStrategy<Value>,
) -> BoxedStrategy<Option<(String, Value)>> {
    proptest::option::weighted(0.7, value.prop_map(move |v| (name.to_owned(), v))).boxed()
}

fn object(fields: Vec<BoxedStrategy<Option<(String, Value)>>>) -> impl Strategy<Value = Value> {
    fields.prop_map(|fields| Value::Object(fields.into_iter().flatten().collect::<Map<_, _>>()))
}

fn sizes() -> Vec<BoxedStrategy<Option<(String, Value)>>> {
    ["n_vcpus", "mem_gib", "disk_size_gib"]
        .map(|field| {
            let value = prop_oneof![3 => Just(json!(20)), 1 => Just(json!(20.0)), 2 => number()];
            let there = value.prop_map(move |v| Some((field.to_owned(), v)));
            prop_oneof![12 => there, 1 => Just(None)].boxed()
        })
        .into()
}

fn create_body() -> impl Strategy<Value = Value> {
    let mut fields = sizes();
    let kind = prop_oneof![9 => Just(json!("vm")), 9 => Just(json!("container")), 1 => anything()];
    fields.push(
        kind.prop_map(|v| Some(("resource_type".to_owned(), v)))
            .boxed(),
    );
    for (field, value) in [
        ("name", name()),
        ("cpu_tier", text("general-purpose|high-performance")),
        ("flavor", text("[a-z]{1,5}")),
        ("gpu_model", text("[A-Z0-9]{1,4}")),
        ("public_key", key().prop_map(Value::from).boxed()),
        ("s3_endpoint_url", url().prop_map(Value::from).boxed()),
        ("s3_access_key_id", text("[!-~]{1,8}")),
        ("s3_prefill_bucket", text("[ -~é]{1,8}")),
        ("ai_provider_api_key", text("[ -~]{1,8}")),
    ] {
        fields.push(prop_oneof![2 => Just(None), 1 => maybe(field, value)].boxed());
    }
    fields.push(prop_oneof![20 => Just(None), 1 => maybe("uuid", anything())].boxed());
    object(fields)
}

fn update_body() -> impl Strategy<Value = Value> {
    let mut fields = sizes();
    fields.push(maybe("name", name()));
    fields.push(prop_oneof![20 => Just(None), 1 => maybe("flavor", anything())].boxed());
    object(fields)
}

fn given<'v>(body: &'v Value, field: &str) -> Option<&'v Value> {
    body.get(field).filter(|value| !value.is_null())
}

/// The integer of a field that the schema accepted.
fn integer(body: &Value, field: &str) -> Option<u32> {
    given(body, field).map(|value| value.as_f64().unwrap() as u32)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn create(body in create_body()) {
        let draft = create::read(&SCHEMAS, body.to_string().as_bytes()).unwrap();
        let accepted = CREATE_WHOLE.is_valid(&body);
        let beyond = ["public_key", "s3_endpoint_url"];
        let errors = || draft.errors.0.keys().filter(|field| !beyond.contains(&field.as_str()));
        prop_assert!(accepted || !draft.errors.0.is_empty(), "only the schema refuses");
        prop_assert!(!accepted || errors().count() == 0, "only the parser refuses: {:?}", draft.errors);
        if accepted {
            prop_assert_eq!(draft.n_vcpus, integer(&body, "n_vcpus"));
            prop_assert_eq!(draft.mem_gib, integer(&body, "mem_gib"));
            prop_assert_eq!(draft.disk_size_gib, integer(&body, "disk_size_gib"));
            prop_assert!(draft.resource_type.is_some());
            prop_assert_eq!(matches!(draft.name, Field::Right(_)), given(&body, "name").is_some());
            prop_assert_eq!(matches!(draft.cpu_tier, Field::Right(_)), given(&body, "cpu_tier").is_some());
            prop_assert_eq!(matches!(draft.flavor, Field::Right(_)), given(&body, "flavor").is_some());
            prop_assert_eq!(matches!(draft.s3[1], Field::Right(_)), given(&body, "s3_access_key_id").is_some());
        }
    }

    #[test]
    fn update(body in update_body()) {
        let (request, errors) = update::read(&SCHEMAS, body.to_string().as_bytes()).unwrap();
        prop_assert_eq!(UPDATE_WHOLE.is_valid(&body), errors.0.is_empty(), "{:?}", errors);
        if errors.0.is_empty() {
            prop_assert_eq!(request.n_vcpus, integer(&body, "n_vcpus"));
            prop_assert_eq!(request.disk_size_gib, integer(&body, "disk_size_gib"));
            prop_assert_eq!(request.name.is_some(), given(&body, "name").is_some());
        }
    }

    #[test]
    fn port(value in number(), extra in prop::option::weighted(0.05, anything())) {
        let mut body = json!({ "port": value });
        if let Some(extra) = extra {
            body["ports"] = extra;
        }
        let port = ports::read(&SCHEMAS, body.to_string().as_bytes()).unwrap();
        prop_assert_eq!(PORT_WHOLE.is_valid(&body), port.is_ok());
        if let Ok(port) = port {
            prop_assert_eq!(Some(u32::from(port)), integer(&body, "port"));
        }
    }

    #[test]
    fn names_by_themselves(value in name()) {
        static SCHEMA: LazyLock<Validator> = LazyLock::new(|| field_schema("name"));
        let Some(text) = value.as_str() else { return Ok(()) };
        prop_assert_eq!(SCHEMA.is_valid(&value), Name::parse(text).is_ok());
    }

    #[test]
    fn urls_by_themselves(text in url()) {
        static SCHEMA: LazyLock<Validator> = LazyLock::new(|| field_schema("s3_endpoint_url"));
        let accepted = SCHEMA.is_valid(&json!(text));
        prop_assert!(accepted || s3_url::check(&text).is_err(), "only the parser accepts it");
        prop_assert!(!accepted || text.contains('[') || s3_url::check(&text).is_ok());
    }

    #[test]
    fn keys_by_themselves(text in key()) {
        static SCHEMA: LazyLock<Validator> = LazyLock::new(|| field_schema("public_key"));
        let accepted = SCHEMA.is_valid(&json!(text));
        prop_assert!(accepted || public_key::parse(&text).is_err(), "only the parser accepts it");
        let (algorithm, data) = KEY.split_once(' ').unwrap();
        let real = text.trim().starts_with(algorithm) && text.split_whitespace().nth(1) == Some(data);
        prop_assert!(!accepted || !real || public_key::parse(&text).is_ok());
    }
}

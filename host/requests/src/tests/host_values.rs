//! The values of the host, and those that a call has learnt.

use super::{body_of, container, vm};
use crate::Requests;
use crate::sample::SampleCall;
use serde_json::{Value, json};

#[test]
fn each_value_is_that_of_the_call() {
    let mut call = vm();
    call["gpus"] = json!(["0000:01:00.0"]);
    call["command"] = json!(["sleep", "9"]);
    let wanted = [
        (
            "installation",
            json!("c8ba4720-ac4f-4603-8aa4-a08d240a1045"),
        ),
        ("installation.end", json!("240a1045")),
        ("installation.end3", json!("045")),
        ("instance", json!("0b0f1f3e-3c1e-4f43-9d2b-2c1c1f8f8f8f")),
        ("incarnation", json!(3)),
        ("kind", json!("vm")),
        ("hostname", json!("demo")),
        ("image", json!("registry.example/base:1")),
        ("images", json!(["registry.example/base:1"])),
        ("size.vcpus", json!(2)),
        ("size.mem_gib", json!(1)),
        ("size.mem_bytes", json!(1u64 << 30)),
        ("size.disk_gib", json!(10)),
        ("size.disk_bytes", json!(10u64 << 30)),
        ("gpus", json!(["0000:01:00.0"])),
        ("ports", json!([22, 80])),
        ("command", json!(["sleep", "9"])),
        (
            "directories",
            json!(["/etc", "/etc/wharf", "/etc/wharf/first-boot"]),
        ),
        ("network.id", json!("o1")),
        ("network.subnet", json!("10.80.1.0/24")),
        ("network.prefix", json!(24)),
        ("network.hex", json!("0a500100")),
        ("network.prefix_hex", json!("18")),
        ("network.gateway", json!("10.80.1.1")),
        ("network.address", json!("10.80.1.7")),
        ("network.mac", json!("02:42:0a:50:01:07")),
        ("public.id", json!("0p")),
        ("public.hex", json!("cb007100")),
        ("public.mac", json!("02:42:cb:00:71:09")),
    ];
    let tables = "[settings]\nprefix = { about = \"x\", default = \"registry.example/\", replaces = \"localhost/wharf/\" }";
    for (name, value) in wanted {
        let body = format!("a = \"{{{name}}}\"");
        assert_eq!(
            body_of(tables, &body, &call, &[]),
            Ok(json!({ "a": value })),
            "{name}"
        );
    }
}

#[test]
fn the_kind_of_a_container() {
    let body = body_of("", "a = \"{kind}\"", &container(), &[]);
    assert_eq!(body, Ok(json!({ "a": "container" })));
}

#[test]
fn a_private_port_has_the_private_address_of_the_node_alone() {
    let of_each = "publish_cidr = { about = \"x\", default = \"198.18.64.0/18\" }\npublish_from = { about = \"x\", default = 20000 }";
    let common = "publish_address = { about = \"x\", type = \"address\", default = \"192.0.2.1\" }";
    let body = "a = { each = \"published\", item = \"{published.address}:{published.node_port}\" }";
    let by_name = "a = \"{argument.p.address}:{argument.p.node_port}\"\n[request.r.arguments]\np = { of = \"published\" }";
    let ports = json!([
        { "node_port": 20001, "instance_port": 22, "private": true },
        { "node_port": 20002, "instance_port": 80 },
    ]);
    for (settings, private, wanted) in [
        (
            common,
            json!("127.0.0.1"),
            ["127.0.0.1:20001", "192.0.2.1:20002"],
        ),
        (common, Value::Null, ["192.0.2.1:20001", "192.0.2.1:20002"]),
        (
            of_each,
            json!("10.0.0.5"),
            ["10.0.0.5:20001", "198.18.64.2:20002"],
        ),
        (
            of_each,
            Value::Null,
            ["198.18.64.1:20001", "198.18.64.2:20002"],
        ),
    ] {
        let tables = format!("[settings]\n{settings}");
        let call = json!({ "published": ports, "private_address": private });
        assert_eq!(
            body_of(&tables, body, &call, &[]),
            Ok(json!({ "a": wanted }))
        );
        let named = body_of(&tables, by_name, &call, &[("p", "20001")]);
        assert_eq!(named, Ok(json!({ "a": wanted[0] })));
    }
}

#[test]
fn ports_have_addresses_and_variables_have_names() {
    let tables = "[settings]\npublish_cidr = { about = \"x\", default = \"\" }\npublish_from = { about = \"x\", default = 20000 }";
    let body = "a = { each = \"published\", item = \"{published.address}\" }";
    let with = |cidr: &str| {
        let call = json!({ "settings": { "publish_cidr": cidr } });
        body_of(tables, body, &call, &[])
    };
    assert_eq!(with("198.18.64.0/18"), Ok(json!({ "a": ["198.18.64.1"] })));
    assert!(
        with("")
            .unwrap_err()
            .contains("settings.publish_cidr is empty")
    );
}

const LEARN: &str = r#"
    [request.list]
    about = "x"
    method = "GET"
    path = "/list"
    calls = "instance"
    arguments.end = { one-of = ["x", "y"] }
    [request.list.learn]
    id = { status = 200, items = "", where = { "/name" = "{instance}-{argument.end}" }, pointer = "/id", pattern = "[a-z]+" }
    bytes = { status = 200, items = "", sum = "/size" }
    refused = { status = 500, says = ["quota"] }
"#;

#[test]
fn a_call_learns_ids_numbers_and_facts() {
    let file = super::file(LEARN).unwrap();
    let requests = Requests::new(&file, &Value::Null).unwrap();
    let mut scope = SampleCall::parse("{}").unwrap().scope;
    let named = |end: &str| format!("0b0f1f3e-3c1e-4f43-9d2b-2c1c1f8f8f8f-{end}");
    let answer = json!([{ "name": named("x"), "id": "a", "size": 5 }, { "name": named("y"), "id": "b", "size": 7 }]);
    let answer = answer.to_string();
    let given = [("end".to_owned(), "y".to_owned())];
    requests.learn(&mut scope, "list", &given, 200, answer.as_bytes());
    requests.learn(&mut scope, "list", &given, 500, b"no QUOTA");
    requests.learn(&mut scope, "other", &given, 200, answer.as_bytes());
    assert_eq!(scope.learnt["id"], ["b"]);
    assert_eq!(scope.numbers["bytes"], 12);
    assert!(scope.facts.contains("refused"));
}

#[test]
fn learnt_ids_are_a_text_if_there_is_one() {
    let body = "\"a?\" = \"{learnt.id}\"\nb = \"x-{learnt.id}\"\nc = \"{learnt.bytes + 1}\"\n\"d?\" = { when = \"learnt.refused\", is = \"{hostname}\" }";
    let with = |learnt: Value| body_of(LEARN, body, &json!({ "learnt": learnt }), &[]);
    assert_eq!(
        with(json!({ "id": ["b"], "bytes": 0, "refused": true })),
        Ok(json!({ "a": ["b"], "b": "x-b", "c": 1, "d": "demo" }))
    );
    for (learnt, words) in [
        (
            json!({ "id": ["b", "c"], "bytes": 0 }),
            "body.b: x-{learnt.id}: a value is a list or a table",
        ),
        (
            json!({ "bytes": 0 }),
            "body.b: {learnt.id}: the engine has not told it in this call",
        ),
        (
            json!({ "id": ["b"] }),
            "body.c: {learnt.bytes}: the engine has not told it in this call",
        ),
    ] {
        let refusal = with(learnt).unwrap_err();
        assert!(refusal.contains(words), "{refusal}");
    }
}

//! The arguments of requests.

use super::{body_of, container, file, rows, write};
use serde_json::{Value, json};

/// The value of the argument `a` with this declaration, as the member `a` of a body.
fn value(declared: &str, given: &[(&str, &str)]) -> Result<Value, String> {
    let body = format!("\"a?\" = \"{{argument.a}}\"\n[request.r.arguments]\na = {declared}");
    let tables = r#"
        [settings]
        on = { about = "x", default = "yes" }
        off = { about = "x", type = "string", optional = true }
    "#;
    let call = json!({ "learnt": { "ids": ["f00", "ba7"], "refused": true } });
    let learn = r#"
        [request.l]
        about = "x"
        method = "GET"
        path = "/l"
        learn.ids = { status = 200, pointer = "/id", pattern = ".*" }
        learn.none = { status = 200, pointer = "/id", pattern = ".*" }
        learn.refused = { status = 200, says = ["x"] }
        learn.accepted = { status = 200, says = ["x"] }
    "#;
    body_of(&format!("{tables}{learn}"), &body, &call, given).map(|body| body["a"].clone())
}

/// Declarations and given values, and the value of the argument. A dash: not given.
const PERMITTED: &str = r#"
    { one-of = ["x-{hostname}", "y"] } <= x-demo => "x-demo"
    { one-of = ["x-{hostname}", "y"] } <= y => "y"
    { one-of = ["x-{hostname}", "y"] } <= - => "x-demo"
    { one-of = ["x", "y"], optional = true } <= - => null
    { one-of = ["x", "{learnt.ids}"] } <= ba7 => "ba7"
    { one-of = ["{learnt.none}", "{settings.off}", "x"] } <= - => "x"
    { one-of = ["{learnt.none}"] } <= - => null
    { flag = true } <= true => true
    { flag = true } <= false => null
    { flag = true } <= - => null
    { max = 60 } <= 0 => 0
    { max = 60 } <= 60 => 60
    { pattern = "[0-9]+G" } <= 10G => "10G"
    { pattern = "[0-9]+G", optional = true } <= - => null
    { flag = true, when = "settings.on = yes" } <= true => true
    { flag = true, when = ["settings.on", "learnt.refused"] } <= true => true
    { flag = true, when = "settings.off" } <= false => null
    { pattern = "x", when = "settings.off" } <= - => null
"#;

/// Declarations and given values, and a part of the refusal.
const REFUSED: &str = r#"
    { one-of = ["x-{hostname}", "y"] } <= z => r: argument a: "z"; it must be x-{hostname} or y
    { one-of = ["{learnt.ids}"] } <= f => it must be {learnt.ids}
    { one-of = ["{learnt.none}"] } <=  => it must be {learnt.none}
    { flag = true } <= 1 => it must be true or false
    { flag = true } <=  => it must be true or false
    { max = 60 } <= 61 => it must be an integer up to 60
    { max = 60 } <= +1 => it must be an integer up to 60
    { max = 60 } <= 01 => it must be an integer up to 60
    { max = 60 } <= -1 => it must be an integer up to 60
    { max = 60 } <= - => r: argument a: required
    { pattern = "[0-9]+G" } <= x10G => it must be text of the form [0-9]+G
    { pattern = "a|b" } <= ab => it must be text of the form a|b
    { pattern = "[^x]*" } <= a/../b => it must be text of the form [^x]*, without / and control characters
    { pattern = "[^x]*" } <= a\nb => it must be text of the form [^x]*, without / and control characters
    { pattern = "x" } <= - => r: argument a: required
    { flag = true, when = ["settings.on", "settings.off"] } <= true => r: argument a: only when settings.on and settings.off
    { flag = true, when = "learnt.accepted" } <= true => only when learnt.accepted
    { max = 60, when = "settings.on = no", optional = true } <= 1 => only when settings.on = no
"#;

fn value_of_row(row: &str) -> Result<Value, String> {
    let (declared, given) = row.split_once("<=").unwrap();
    match given.trim() {
        "-" => value(declared, &[]),
        given => value(declared, &[("a", given)]),
    }
}

#[test]
fn an_argument_has_one_of_its_permitted_values() {
    for (row, wanted) in rows(PERMITTED) {
        assert_eq!(
            value_of_row(&row).map(|value| value.to_string()).as_deref(),
            Ok(wanted),
            "{row}"
        );
    }
}

#[test]
fn other_arguments_are_refused() {
    for (row, words) in rows(REFUSED) {
        let refusal = value_of_row(&row).unwrap_err();
        assert!(refusal.contains(words), "{row}: {refusal}");
    }
    let long = "x".repeat(4097);
    for (given, words) in [
        (vec![("b", "true")], "r: there is no argument \"b\""),
        (
            vec![("a", "true"), ("a", "true")],
            "r: the argument \"a\" twice",
        ),
        (
            vec![("a", long.as_str())],
            "r: an argument has more than 4096 bytes",
        ),
        (
            vec![(long.as_str(), "")],
            "r: an argument has more than 4096 bytes",
        ),
    ] {
        let refusal = value("{ flag = true }", &given).unwrap_err();
        assert_eq!(refusal, words);
    }
}

#[test]
fn an_argument_may_name_a_member_of_a_list_of_the_call() {
    let call = json!({
        "published": [{ "node_port": 20005, "instance_port": 22 }, { "node_port": 20006, "instance_port": 80 }],
        "files": [{ "path": "/etc/motd", "text": "x" }],
    });
    let tables = r#"
        [settings]
        publish_cidr = { about = "x", default = "198.18.64.0/29" }
        publish_from = { about = "x", default = 20001 }
    "#;
    let of = |list: &str, parts: &str, given: &str| {
        let body = format!("a = \"{parts}\"\n[request.r.arguments]\nm = {{ of = \"{list}\" }}");
        body_of(tables, &body, &call, &[("m", given)])
    };
    for (list, parts, given, wanted) in [
        (
            "published",
            "{argument.m.address}:{argument.m.node_port}-{argument.m.instance_port}",
            "20006",
            "198.18.64.5:20006-80",
        ),
        (
            "files",
            "{argument.m.path} {argument.m.uid}:{argument.m.gid} {argument.m.mode}",
            "/etc/motd",
            "/etc/motd 0:0 0644",
        ),
    ] {
        assert_eq!(of(list, parts, given), Ok(json!({ "a": wanted })), "{list}");
    }
    for (list, parts, given) in [
        (
            "published",
            "{argument.m.address}:{argument.m.node_port}",
            "20007",
        ),
        (
            "published",
            "{argument.m.address}:{argument.m.node_port}",
            "22",
        ),
        ("files", "{argument.m.path}", "/etc/passwd"),
    ] {
        let refusal = of(list, parts, given).unwrap_err();
        assert!(
            refusal.contains("it must be one of the call's "),
            "{refusal}"
        );
    }
    let outside = json!({ "published": [{ "node_port": 20009, "instance_port": 22 }] });
    let body = "a = \"{argument.m.address}\"\n[request.r.arguments]\nm = { of = \"published\" }";
    let refusal = body_of(tables, body, &outside, &[("m", "20009")]).unwrap_err();
    assert!(
        refusal.contains("has no address for the port 20009"),
        "{refusal}"
    );
}

#[test]
fn a_file_is_sent_as_a_body() {
    let tables = r#"
        [request.r]
        about = "x"
        method = "PUT"
        path = "/files"
        query = { path = "{argument.file.path}" }
        headers = { X-mode = "{argument.file.mode}", X-uid = "{argument.file.uid}" }
        calls = "create"
        arguments.file = { of = "files" }
        body = "file"
    "#;
    let written = write(tables, &container(), &[("file", "/etc/motd")]).unwrap();
    assert_eq!(written.target, "/files?path=%2Fetc%2Fmotd");
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(
        written.headers,
        [header("X-mode", "0644"), header("X-uid", "0")]
    );
    match written.body {
        crate::RenderedBody::File(file) => assert_eq!(file.path, "/etc/motd"),
        other => panic!("{other:?}"),
    }
    assert!(
        write(tables, &container(), &[])
            .unwrap_err()
            .contains("argument file: required")
    );
    assert!(file(&tables.replace("files\" }", "files\", optional = true }")).is_err());
}

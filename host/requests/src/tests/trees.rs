//! The constructs of bodies, and the first rule: a value that is missing refuses the request.

use super::{REQUEST, body_of, container, rows, vm};
use crate::RenderedBody;
use serde_json::{Value, json};

const TABLES: &str = r#"
    [settings]
    none = { about = "x", type = "string", optional = true }
    empty = { about = "x", default = "" }
    names = { about = "x", default = ["a", "b"] }
    nobody = { about = "x", type = "list", default = [] }
    limits = { about = "x", default = { nproc = 9, files = 7 } }
    mode = { about = "x", default = "keep-id:uid=5", pattern = "(?<word>[a-z-]+):?(?<rest>.*)" }
    [values]
    zero = 0
    pair = { one = 1, two = "{size.vcpus}" }
    words = ["x", "y"]
    of-vm = [{ when = "kind = vm", is = "{size.disk_gib + 3}G" }]
    both = [{ when = ["kind = container", "!settings.none", "settings.names"], is = true }, { is = false }]
    unset = { when = "settings.none", is = ["{settings.none}"] }
"#;

/// Bodies, and their text.
const WRITTEN: &str = r#"
    a = "{size.vcpus}" => {"a":2}
    a = "{size.vcpus:text}" => {"a":"2"}
    a = "{size.mem_gib}GiB of {size.disk_gib}" => {"a":"1GiB of 10"}
    a = "{size.vcpus * 100000}" => {"a":200000}
    a = "{(1 + 2) * 7 / 2 + value.zero}" => {"a":10}
    a = "{1 + 2 * 3}x" => {"a":"7x"}
    a = "{7 / 2 * 2:text}" => {"a":"6"}
    a = "{settings.names:text}" => {"a":["a","b"]}
    a = "{settings.empty}" => {"a":""}
    a = "{settings.mode.word}/{settings.mode.rest}" => {"a":"keep-id/uid=5"}
    a = ["{settings.nobody}"] => {"a":[]}
    a = [1, true, "x", {}]\nb = -5 => {"a":[1,true,"x",{}],"b":-5}
    => {}
    "a?" = "{settings.none}" => {}
    "a?" = "x{settings.none}" => {}
    "a?" = "{settings.empty}" => {}
    "a?" = "{settings.nobody}" => {}
    "a?" = { each = "settings.nobody", item = "x" } => {}
    "a?" = { each = "settings.nobody", key = "{item}", item = "x" } => {}
    "a?" = "{value.of-vm}" => {}
    "a?" = "{value.zero}" => {"a":0}
    "a-{settings.none}?" = "x{size.vcpus}" => {}
    "{hostname}.x" = 1 => {"demo.x":1}
    z = 1\nb.y = 2\nb.c = 3\na = 4 => {"a":4,"b":{"c":3,"y":2},"z":1}
    a = ["w", "{value.words}", ["z", ["q"]]] => {"a":["w","x","y","z","q"]}
    a = ["w", [{ when = "kind = vm", is = ["n"] }, { is = [] }]] => {"a":["w"]}
    a = "{value.both}" => {"a":true}
    a = [{ when = "!settings.empty", is = 1 }, { when = "settings.names", is = 2 }] => {"a":1}
    a = [{ when = "settings.none", is = 1 }, { when = "value.zero", is = 2 }] => {"a":2}
    a = { when = "size.vcpus = 2", is = { b = "{hostname}" } } => {"a":{"b":"demo"}}
    a = { each = "environment", item = "{variable.name}={variable.value}" } => {"a":["LANG=C.UTF-8"]}
    a = { each = "environment", key = "{variable.name}", item = "{variable.value}" } => {"a":{"LANG":"C.UTF-8"}}
    a = { each = "value.words", item = { n = "{n}", w = "{item}" } } => {"a":[{"n":0,"w":"x"},{"n":1,"w":"y"}]}
    a = { each = "value.words", key = "w{n}", item = "{item}" } => {"a":{"w0":"x","w1":"y"}}
    a = { each = "settings.limits", item = "{item.name}={item.value}" } => {"a":["files=7","nproc=9"]}
    a = { each = "files", item = "{file.path} {file.mode}" } => {"a":["/etc/wharf/first-boot/password 0644","/etc/motd 0644"]}
    a = { each = "value.words", item = { each = "published", item = "{item}{published.instance_port}{n}" } } => {"a":["x220","y220"]}
    a = { each = "value.words", key = "k", item = ["{item}"] } => {"a":{"k":["x","y"]}}
    a = { each = "value.words", key = "k", item = {} } => {"a":{"k":{}}}
    with = ["value.pair"]\nthree = 3 => {"one":1,"three":3,"two":2}
"#;

/// Bodies, and a part of their refusals.
const REFUSED: &str = r#"
    a.b = "{settings.none}" => r: body.a.b: {settings.none}: the node has no such setting
    a = "x{settings.none}" => body.a: {settings.none}: the
    a = ["{settings.none}"] => body.a[0]: {settings.none}: the
    "a?" = ["{settings.none}"] => body.a[0]: {settings.none}: the
    "a?" = { b = "{settings.none}" } => body.a.b: {settings.none}: the
    a = { each = "value.words", item = "{settings.none}" } => body.a[0]: {settings.none}: the
    "a?" = { each = "value.words", item = "{settings.none}" } => body.a[0]: {settings.none}: the
    a = { each = "value.unset", item = "x" } => body.a: {value.unset}: no case holds
    a = "{value.of-vm}" => body.a: {value.of-vm}: no case holds
    a = [{ when = "kind = container" }, { is = 1 }] => body.a: the case that holds has no value
    "{settings.none}" = 1 => body: {settings.none}: the
    a = "{public.id}" => body.a: {public.id}: this call has no such network
    a = { each = "ports", item = "{item}" } => body.a: {ports}: the instance is not a VM
    a = "{size.disk_bytes * size.disk_bytes * size.disk_bytes}" => body.a: a calculation exceeds 64 bits
    a = "{18446744073709551615 + size.vcpus}" => body.a: a calculation exceeds 64 bits
    a = "{size.vcpus / value.zero}" => body.a: a division by zero
    a = { "{hostname}" = 1, demo = 2 } => body.a: the key "demo" twice
    with = ["value.pair"]\none = 2 => body: the key "one" twice
    with = ["value.pair", "value.pair"] => body: the key "one" twice
    a = { each = "value.words", key = "k", item = "{item}" } => body.a: the key "k" twice
"#;

#[test]
fn bodies_are_written() {
    for (body, text) in rows(WRITTEN) {
        let tables = format!("{TABLES}{REQUEST}[request.r.body]\n{body}");
        let written = super::write(&tables, &container(), &[]).map(|written| written.body);
        assert_eq!(written, Ok(RenderedBody::Json(text.to_owned())), "{body}");
    }
    let of_vm = body_of(TABLES, r#""a?" = "{value.of-vm}""#, &vm(), &[]);
    assert_eq!(of_vm, Ok(json!({ "a": "13G" })));
}

#[test]
fn a_value_that_is_missing_or_wrong_refuses_the_request() {
    for (body, words) in rows(REFUSED) {
        let refusal = body_of(TABLES, &body, &container(), &[]).unwrap_err();
        assert!(refusal.contains(words), "{body}: {refusal}");
    }
}

#[test]
fn a_refusal_does_not_repeat_values() {
    let call = json!({ "environment": ["A=hidden", "A=other"] });
    let body =
        r#"a = { each = "environment", key = "{variable.name}", item = "{variable.value}" }"#;
    let refusal: Result<Value, _> = body_of("", body, &call, &[]);
    assert_eq!(refusal.unwrap_err(), "r: body.a: the key \"A\" twice");
}

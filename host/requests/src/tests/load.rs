//! Files that are refused, each with a part of its error.

use super::{REQUEST, file, rows};

const TABLES: &str = r#"
    [settings]
    text = { about = "x", default = "a" }
    list = { about = "x", default = ["a"] }
    limits = { about = "x", default = { a = 1 } }
    switch = { about = "x", default = "off", pattern = "auto|off" }
    count = { about = "x", default = 5, min = 2, max = 9 }
    [values]
    word = "x"
    table = { a = 1 }
    mixed = [{ when = "settings.text = a", is = 1 }, { is = "x" }]
"#;

/// Bodies of a request.
const BODIES: &str = r#"
    a = "{sise.vcpus}" => request.r.body.a: {sise.vcpus}: there is no {sise.vcpus} here
    a = "{size.cpus}" => there is no {size.cpus} here
    a = "{settings.none}" => there is no {settings.none} here
    a = "{settings.text.part}" => there is no {settings.text.part} here
    a = "{value.none}" => there is no {value.none} here
    a = "{learnt.none}" => there is no {learnt.none} here
    a = "{argument.none}" => there is no {argument.none} here
    a = "{network.public}" => there is no {network.public} here
    a = "{size.mem_mib}" => there is no {size.mem_mib} here
    a = { each = "networks", item = 1 } => there is no {networks} here
    a = "{item}" => there is no {item} here
    a = "{n}" => there is no {n} here
    a = "{published.node_port}" => there is no {published.node_port} here
    a = { each = "published", item = "{item}" } => there is no {item} here
    a = { each = "gpus", item = "{item.name}" } => there is no {item.name} here
    a = { each = "settings.limits", item = "{item.size}" } => there is no {item.size} here
    a = { when = "nothing", is = "x" } => there is no {nothing} here
    a = { each = "nothing", item = "x" } => each: there is no {nothing} here
    with = ["value.none"] => with: there is no {value.none} here
    "{nothing}" = 1 => there is no {nothing} here
    a = { each = "published", item = "{published.address}" } => needs the setting `publish_address`, a text, or `publish_cidr`, a text
    a = { each = "published", item = "{published.node_port}" } => {published.node_port} needs {published.address} beside it
    a = { b = [{ each = "gpus", item = { each = "published", key = "{published.node_port}", item = 1 } }] } => {published.node_port} needs {published.address} beside it
    a = "{argument.p.node_port}"\n[request.r.arguments]\np = { of = "published" } => request.r.arguments.p: {argument.p.node_port} needs {argument.p.address} beside it
    a = "{argument.p.address}"\n[request.r.arguments]\np = { of = "published" } => {argument.p.address} needs the setting `publish_address`, a text
    a = "{mark}" => only the call that marks the store has {mark}
    a = "{hostname + 1}" => {hostname} is a text, and calculations are with numbers
    a = "{settings.text * 2}" => {settings.text} is a text
    a = "{value.mixed + 1}" => {value.mixed} is of different types in different cases
    a = "{gpus + 1}" => {gpus} is a list
    a = "x{gpus}" => {gpus} is a list, and a text consists of
    a = "x{value.table}" => {value.table} is a table, and a text consists of
    a = "{value.table:text}" => {value.table} is a table, and only
    a = { each = "published", item = "{published}" } => {published} is a member with parts
    a = { each = "hostname", item = "x" } => {hostname} is a text, and `each` takes a list
    a = { when = "gpus = 1", is = "x" } => {gpus} is a list, and a text is not compared with that
    a = { when = "kind = VM", is = "x" } => {kind} is never "VM"
    a = { when = "settings.switch = of", is = "x" } => {settings.switch} is never "of"
    a = { when = "settings.count = 10", is = "x" } => {settings.count} is never "10"
    a = { when = "argument.p = pubic", is = "x" }\n[request.r.arguments]\np = { one-of = ["own", "public"] } => {argument.p} is never "pubic"
    a = { when = "argument.p = false", is = "x" }\n[request.r.arguments]\np = { flag = true } => {argument.p} is never "false"
    a = { when = "argument.p = 10", is = "x" }\n[request.r.arguments]\np = { max = 9 } => {argument.p} is never "10"
    a = { when = "argument.p = 09", is = "x" }\n[request.r.arguments]\np = { max = 9 } => {argument.p} is never "09"
    a = { when = "argument.p = x", is = "x" }\n[request.r.arguments]\np = { max = 9 } => {argument.p} is never "x"
    a = { when = "argument.p = ab", is = "x" }\n[request.r.arguments]\np = { pattern = "[ab]" } => {argument.p} is never "ab"
    a = { when = "argument.p = a/b", is = "x" }\n[request.r.arguments]\np = { pattern = ".*" } => {argument.p} is never "a/b"
    a = { when = "learnt.l = false", is = "x" }\n[request.l]\nabout = "x"\nmethod = "GET"\npath = "/l"\nlearn.l = { status = 200, says = ["x"] } => {learnt.l} is never "false"
    with = ["value.word"] => {value.word} is a text, and `with` takes a table
    "a?" = 1 => a constant is never left out
    "a?" = { b = ["x", { c = true }] } => a constant is never left out
    a = [{ is = 1 }, { when = "kind = vm", is = 2 }] => a case without `when` is the last one
    a = [{ is = 1 }, "x"] => a list has either cases or items
    a = { each = "gpus" } => `each` needs an `item`
    a = { each = "gpus", item = 1, other = 2 } => "other": beside `each` stand only
    a = { each = 1, item = 1 } => each: must be a text
    a = { when = [], is = 1 } => a condition needs a test
    a = { when = "!kind = vm", is = 1 } => "!kind = vm" is no condition
    a = { when = "kind =", is = 1 } => is no condition
    a = { when = "kind vm", is = 1 } => is no condition
    a = { when = 1, is = 1 } => 1 is not the text of a condition
    with = "value.table" => with: must be a list of names
    a = 1.5 => neither a text, an integer nor a flag
    a = 2026-01-01 => neither a text, an integer nor a flag
    a = "{" => an opening brace without a closing one
"#;

/// Members of a request that any call may send.
const REQUESTS: &str = r#"
    path = "a" => request.r.path: must begin with /
    path = "/{images}"\ncalls = "survey" => {images} is a list
    path = "/a b" => request.r.path: the path part "a b"; one has letters
    path = "/a/" => request.r.path: the path part ""
    path = "/a//{installation}" => request.r.path: the path part ""
    path = "/../{installation}" => request.r.path: the path part ".."
    query = { "a.b" = "c" } => request.r.query: the key "a.b" has other characters
    query = [{ when = "installation", is = { "a b?" = "{installation}" } }] => request.r.query: the key "a b" has other characters
    [transfer.t]\nabout = "x"\nread = "/a"\nchanges = "/b"\nwrite = "{installation}/c/?path=/"\ncalls = "create" => transfer.t.write: the path part ""
    calls = "ensure" => node, survey, mark, instance, change, create, move
    calls = [] => a request needs a call
    other = 1 => unknown field `other`
    body = "files" => "files" is not "archive"
    body = "archive" => only the call that creates an instance has {files}
    body = "file" => body: needs one argument `of = "files"`
    query = ["a"] => query: is a list, and `with` takes a table
    headers = { Host = "x" } => headers.Host: must begin with "X-"
    headers = { "X- " = "x" } => not the name of a header
    arguments.a = { flag = false } => has one of `one-of`
    arguments.a = { one-of = [] } => has one of `one-of`
    arguments.a = { max = 1, flag = true } => has one of `one-of`
    arguments.a = { pattern = "(" } => not a pattern
    arguments.a = { pattern = "a)|(?:b" } => not a pattern
    arguments.a = { pattern = "[a-z]{0,9999}" } => not a pattern
    path = "/a?b=c" => request.r.path: its query stands in `query`
    job = true\nbody = "archive"\ncalls = "create" => request.r.job: takes no files, and learns nothing
    job = true\nlearn.a = { status = 200, says = ["x"] } => request.r.job: takes no files, and learns nothing
    [request.s]\nabout = "x"\nmethod = "POST"\npath = "/p" => request.s.calls: required for a change
    arguments.a = { of = "published" } => arguments.a: only the call that creates an instance or the call that moves an instance here has {published}
    arguments = { a = { flag = true, when = "argument.b" }, b = { flag = true } } => arguments.a: when: there is no {argument.b} here
    arguments = { a = { one-of = ["{value.v}"] }, b = { max = 1 } }\n[values]\nv = "{argument.b}" => there is no {argument.b} here
    path = "/{value.v}"\n[values]\nv = "{argument.b}"\n[request.s]\nabout = "x"\nmethod = "GET"\npath = "/p"\narguments.b = { max = 1 } => request.r.path: /{value.v}: values.v: {argument.b}: there is no {argument.b} here
    learn.a = { status = 200, items = "", where = { "/a" = "{nothing}" }, pointer = "/b", pattern = "x" } => learn.a.where."/a": {nothing}: there is no
    learn.a = { status = 200, says = ["x"] }\n[request.s]\nabout = "x"\nmethod = "GET"\npath = "/p"\nlearn.a = { status = 200, pointer = "/b", number = "first" } => another request learns another kind of value
    [transfer.t]\nabout = "x"\nread = "/a"\nchanges = "b"\nwrite = "/c"\ncalls = "create" => transfer.t.changes: must begin with /
    [transfer.t]\nabout = "x"\nread = "/a"\nwrite = "/c"\ncalls = "create" => transfer.t.changes: comes with read
    [transfer.t]\nabout = "x"\nchanges = "/b"\nwrite = "/c"\ncalls = "create" => transfer.t.changes: comes with read
    [transfer.t]\nabout = "x"\nread = "/a"\ncalls = "change" => transfer.t.changes: comes with read
    [transfer.t]\nabout = "x"\nread = "/a"\nroot = "a/b"\ncalls = "change" => transfer.t.root: the name of a directory
    [transfer.t]\nabout = "x"\nread = "/a"\nroot = "a"\nchanges = "/b"\ncalls = "change" => transfer.t.root: the name of a directory
    [transfer.t]\nabout = "x"\nread = "/a"\nroot = "a"\ncalls = "change"\nimage.f = "x" => transfer.t.image: for a transfer that writes alone
    [transfer.t]\nabout = "x"\nwrite = "/a"\ncalls = "create"\nimage.f.a = "{other}" => transfer.t.image."f".a: {other}: there is no {other} here
    [transfer.t]\nabout = "x"\ncalls = "create" => transfer.t.read: a transfer needs an end
    [transfer.t]\nabout = "x"\nread = "/a"\nchanges = "/b" => missing field `calls`
    [transfer.t]\nabout = "x"\nwrite = "c"\ncalls = "create" => transfer.t.write: must begin with /
    [transfer.r]\nabout = "x"\nread = "/a"\nchanges = "/b"\nwrite = "/c"\ncalls = "create" => transfer.r: a request has this name
    [values]\na = "{value.b}"\nb = ["{value.a}"] => is a part of itself
    [values]\na = { when = "value.a", is = 1 } => values.a: is a part of itself
    [values]\na = { each = "value.b", item = 1 }\nb = { with = ["value.a"] } => is a part of itself
    [values]\na = "{nothing}" => values.a: {nothing}: there is no {nothing} here
    [values]\n"a b" = 1 => "a b": a name has letters
    [settings]\na = { about = "x" } => settings.a: needs a default or a type
    [settings]\na = { about = "x", default = 1, optional = true } => an optional setting has no default
    [settings]\na = { about = "x", default = "x", pattern = "y" } => settings.a: default: "x" does not fit the pattern y
    [settings]\na = { about = "Sizes of a.", default = "x", pattern = "y" } => does not fit the pattern y: Sizes of a.
    [settings]\na = { about = "x", default = 3, max = 2 } => settings.a: default: must be at most 2
    [settings]\na = { about = "x", default = 1, min = 2 } => settings.a: default: must be at least 2
    [settings]\na = { about = "x", default = 1, replaces = "y" } => replaces: only for a text
    [settings]\na = { about = "x", default = "", replaces = "y" }\nb = { about = "x", default = "", replaces = "z" } => only one `replaces`
    [other] => unknown field `other`
"#;

fn error(tables: &str) -> String {
    match file(tables) {
        Ok(_) => panic!("accepted: {tables}"),
        Err(error) => error,
    }
}

#[test]
fn a_file_is_refused_for_a_body() {
    for (body, words) in rows(BODIES) {
        let error = error(&format!("{TABLES}{REQUEST}[request.r.body]\n{body}"));
        assert!(error.contains(words), "{body}: {error}");
    }
}

#[test]
fn the_address_of_public_ports_is_in_no_request() {
    let settings = "[settings]\npublish_address = { about = \"x\", type = \"address\", default = \"0.0.0.0\" }\n\
                    publish_cidr = { about = \"x\", default = \"\" }\n\
                    publish_from = { about = \"x\", default = 20000 }\n";
    let of = |body: &str| file(&format!("{settings}{REQUEST}[request.r.body]\n{body}"));
    for body in [
        "a = \"{settings.publish_address}\"",
        "a = \"tcp:{settings.publish_address}\"",
        "a = \"{settings.publish_cidr}\"",
        "a = \"{argument.p}\"\n[request.r.arguments]\np = { one-of = [\"{settings.publish_address}\"] }",
        "a = \"{value.v}\"\n[values]\nv = \"{settings.publish_address}\"",
    ] {
        let error = of(body).unwrap_err();
        assert!(error.contains("is of public ports alone"), "{error}");
    }
    assert!(of("a = { when = \"settings.publish_cidr\", is = 1 }").is_ok());
    let range =
        of("a = { each = \"published\", item = \"{published.address}:{published.node_port}\" }");
    assert!(range.is_ok());
}

#[test]
fn a_file_is_refused_for_a_request_or_a_table() {
    for (rest, words) in rows(REQUESTS) {
        let path = if rest.starts_with("path") {
            ""
        } else {
            "path = \"/p\"\n"
        };
        let error = error(&format!(
            "[request.r]\nabout = \"x\"\nmethod = \"GET\"\n{path}{rest}"
        ));
        assert!(error.contains(words), "{rest}: {error}");
    }
    let method = error("[request.r]\nabout = \"x\"\nmethod = \"TRACE\"\npath = \"/p\"");
    assert!(method.contains("is not one of GET, HEAD"), "{method}");
    let empty = crate::RequestFile::parse("kind = \"\"\nabout = \"x\"").unwrap_err();
    assert!(empty.contains("kind: must not be empty"), "{empty}");
}

#[test]
fn a_value_must_be_one_of_the_requests_calls() {
    const INSTANCE: &str = "a call about one instance";
    const CHANGE: &str = "a call that changes one instance";
    const CREATE: &str =
        "the call that creates an instance or the call that moves an instance here";
    let of = |calls: &str, path: &str| {
        file(&format!(
            "[values]\nname = \"x-{{hostname}}\"\nwrapped = \"{{value.name}}\"\n\
             [request.r]\nabout = \"x\"\nmethod = \"GET\"\npath = \"{path}\"\n{calls}"
        ))
    };
    for (calls, path, having) in [
        ("", "/{instance}", INSTANCE),
        ("calls = \"node\"", "/{instance}", INSTANCE),
        ("calls = \"instance\"", "/{size.vcpus}", CHANGE),
        ("calls = \"instance\"", "/{network.hex}", CHANGE),
        ("calls = \"change\"", "/{hostname}", CREATE),
        (
            "calls = [\"create\", \"change\"]",
            "/{value.wrapped}",
            CREATE,
        ),
        (
            "calls = \"create\"",
            "/{mark}",
            "the call that marks the store",
        ),
    ] {
        let error = of(calls, path).unwrap_err();
        assert!(error.contains(&format!("only {having} has {{")), "{error}");
    }
    for (calls, path) in [
        ("", "/{installation}"),
        ("calls = \"instance\"", "/{instance}"),
        ("calls = [\"create\", \"move\"]", "/{value.wrapped}"),
        ("calls = \"move\"", "/{image}"),
        ("calls = \"mark\"", "/{mark}"),
    ] {
        assert!(of(calls, path).is_ok(), "{calls} {path}");
    }
}

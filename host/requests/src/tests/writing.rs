//! Targets, calls, purposes, transfers and settings.

use super::{container, file, rows, send, write};
use crate::{Purpose, RenderedBody, Requests, SampleCall, SourceTargets, Targets};
use serde_json::json;

#[test]
fn a_query_is_encoded_and_sorted() {
    let tables = r#"
        [settings]
        none = { about = "x", type = "string", optional = true }
        [values]
        shared = { project = "p", target = "{settings.none}x" }
        more = { project = "p" }
        [request.r]
        about = "x"
        method = "GET"
        path = "/images/{image}/json"
        calls = "create"
        arguments = { all = { flag = true }, grace = { max = 9 } }
        [request.r.query]
        with = ["value.more"]
        "z?" = "{argument.all}"
        "none?" = "{settings.none}"
        grace = "{argument.grace}"
        filters = { label = ["a={installation.end}", "ä b"], "n?" = "{settings.none}" }
    "#;
    let tables = tables.replace(r#", target = "{settings.none}x""#, "");
    let written = write(&tables, &container(), &[("all", "true"), ("grace", "3")]).unwrap();
    assert_eq!(
        written.target,
        "/images/localhost/wharf/base:1/json?filters=%7B%22label%22%3A%5B%22a%3D240a1045%22%2C%22%C3%A4%20b%22%5D%7D\
         &grace=3&project=p&z=true"
    );
    assert_eq!(written.body, RenderedBody::None);
    let written = write(&tables, &container(), &[("grace", "0")]).unwrap();
    assert!(!written.target.contains("&z="), "{}", written.target);
}

#[test]
fn a_value_cannot_change_the_form_of_a_target() {
    let tables = r#"
        [settings]
        s = { about = "x", default = "a" }
        [request.r]
        about = "x"
        method = "GET"
        path = "/a/{settings.s}/b"
        query = { "{settings.s}" = "1" }
    "#;
    for s in [
        "", "..", ".", "x?y=1", "x#y", "x%2fy", "x y", "ä", "x\n", "a//b", "a/../b", "/", "x&y",
    ] {
        let refusal = write(tables, &json!({ "settings": { "s": s } }), &[]);
        assert!(refusal.is_err(), "{s:?}: {refusal:?}");
    }
    let in_key = tables.replace("/{settings.s}/", "/x/");
    for s in ["x&y", "x=y", "", "ä", "x%3d"] {
        let refusal = write(&in_key, &json!({ "settings": { "s": s } }), &[]);
        assert!(refusal.is_err(), "{s:?}: {refusal:?}");
    }
    let in_value = in_key.replace("\"{settings.s}\" = \"1\"", "k = \"{settings.s}\"");
    let refusal = write(&in_value, &json!({ "settings": { "s": "a\nb" } }), &[]).unwrap_err();
    assert_eq!(refusal, "r: the value of query key \"k\"");
    let in_header = in_key.replace(
        "query = { \"{settings.s}\" = \"1\" }",
        "headers = { X-a = \"{settings.s}\" }",
    );
    let refusal = write(&in_header, &json!({ "settings": { "s": "a\r\nb" } }), &[]).unwrap_err();
    assert_eq!(refusal, "r: headers.X-a: not the value of a header");
}

/// Calls of a file, and those that send its request.
const CALLS: &str = r#"
    => node survey mark instance change create move
    calls = "node" => node survey mark
    calls = "survey" => survey
    calls = "mark" => mark
    calls = "instance" => instance change create move
    calls = "change" => change create move
    calls = "create" => create
    calls = "move" => move
    calls = ["create", "move"] => create move
"#;

/// A call, a purpose, the request's method and the rest of it.
const WRONG_PURPOSES: &str = r#"
    create send GET calls = ["mark", "move"] => r: only for the call that marks the store or the call that moves an instance here
    instance send POST calls = "instance" => r: POST in a call that changes nothing
    survey job DELETE job = true\ncalls = "node" => r: DELETE in a call that changes nothing
    create job GET job = false => r: must not be a job
    create send GET job = true => r: must be a job
"#;

#[test]
fn a_request_is_for_its_calls_and_its_purpose() {
    let of = |method: &str, rest: &str| {
        file(&format!(
            "[request.r]\nabout = \"x\"\nmethod = \"{method}\"\npath = \"/r\"\n{rest}"
        ))
        .unwrap()
    };
    let all = [
        "node", "survey", "mark", "instance", "change", "create", "move",
    ];
    for (calls, permitted) in rows(CALLS) {
        for call in all {
            let written = send(
                &of("GET", &calls),
                "r",
                &json!({ "call": call }),
                &[],
                Purpose::Send,
            );
            let is_permitted = permitted.split(' ').any(|one| one == call);
            assert_eq!(
                written.is_ok(),
                is_permitted,
                "{calls} in {call}: {written:?}"
            );
        }
    }
    for (row, words) in rows(WRONG_PURPOSES) {
        let [call, purpose, method, rest] = row.splitn(4, ' ').collect::<Vec<_>>()[..] else {
            panic!("{row}");
        };
        let purpose = match purpose {
            "send" => Purpose::Send,
            _ => Purpose::Job,
        };
        let call = json!({ "call": call });
        let refusal = send(&of(method, rest), "r", &call, &[], purpose);
        assert_eq!(refusal.unwrap_err(), words, "{row}");
    }
    let read = json!({ "call": "instance" });
    let job = of("POST", "job = true\ncalls = \"instance\"");
    assert!(send(&job, "r", &read, &[], Purpose::Show).is_ok());
    assert!(send(&of("HEAD", ""), "r", &read, &[], Purpose::Send).is_ok());
    let unknown = send(&of("GET", ""), "other", &read, &[], Purpose::Send).unwrap_err();
    assert_eq!(unknown, "there is no request \"other\"");
}

#[test]
fn a_transfer_has_three_targets() {
    let file = file(
        r#"
        [transfer.content]
        about = "x"
        read = "/c/{argument.c}/export"
        changes = "/c/{argument.c}/changes"
        write = "/c/{instance}-part/archive?path=/"
        calls = "create"
        arguments.c = { one-of = ["{hostname}"] }
        [request.r]
        about = "x"
        method = "GET"
        path = "/r"
        "#,
    )
    .unwrap();
    let requests = Requests::new(&file, &json!({})).unwrap();
    let transfer = |call: &serde_json::Value, name: &str, container: &str| {
        let scope = SampleCall::parse(&call.to_string()).unwrap().scope;
        let arguments = [("c".to_owned(), container.to_owned())];
        let written = requests.transfer(&scope, name, &arguments);
        written.map_err(|refusal| refusal.0)
    };
    let wanted = Targets {
        source: Some(SourceTargets {
            read: "/c/demo/export".to_owned(),
            changes: Some("/c/demo/changes".to_owned()),
            root: None,
        }),
        write: Some("/c/0b0f1f3e-3c1e-4f43-9d2b-2c1c1f8f8f8f-part/archive?path=/".to_owned()),
        below: None,
        image: Vec::new(),
        kept: Vec::new(),
    };
    assert_eq!(transfer(&container(), "content", "demo"), Ok(wanted));
    for (call, name, given, words) in [
        ("create", "r", "demo", "r: is no transfer"),
        ("create", "other", "demo", "there is no request \"other\""),
        (
            "move",
            "content",
            "demo",
            "content: only for the call that creates an instance",
        ),
        (
            "create",
            "content",
            "other",
            "content: argument c: \"other\"; it must be {hostname}",
        ),
    ] {
        let refusal = transfer(&json!({ "call": call }), name, given);
        assert_eq!(refusal.unwrap_err(), words);
    }
    for purpose in [Purpose::Show, Purpose::Send, Purpose::Job] {
        let refusal = send(&file, "content", &container(), &[], purpose);
        assert_eq!(refusal.unwrap_err(), "content: is a transfer");
    }
}

#[test]
fn a_transfer_with_one_end_has_its_targets_alone() {
    let file = file(
        r#"
        [transfer.offer]
        about = "x"
        read = "/c/{argument.c}/export"
        changes = "/c/{argument.c}/changes"
        calls = "change"
        arguments.c = { one-of = ["own", "other"] }
        [transfer.fetch]
        about = "x"
        write = "/c/{instance}-part/archive?path=/"
        calls = "create"
        "#,
    )
    .unwrap();
    let requests = Requests::new(&file, &json!({})).unwrap();
    let transfer = |call: serde_json::Value, name: &str, arguments: &[(String, String)]| {
        let scope = SampleCall::parse(&call.to_string()).unwrap().scope;
        let written = requests.transfer(&scope, name, arguments);
        written.map_err(|refusal| refusal.0)
    };
    let own = [("c".to_owned(), "own".to_owned())];
    let offered = transfer(json!({ "call": "change" }), "offer", &own).unwrap();
    let wanted = Targets {
        source: Some(SourceTargets {
            read: "/c/own/export".to_owned(),
            changes: Some("/c/own/changes".to_owned()),
            root: None,
        }),
        write: None,
        below: None,
        image: Vec::new(),
        kept: Vec::new(),
    };
    assert_eq!(offered, wanted);
    assert_eq!(
        offered.to_string(),
        "GET /c/own/export\nGET /c/own/changes\n"
    );
    // The content of a mounted volume stays, also below content from another node.
    let mounts = json!([{ "volume": "1c9e6679-7425-40de-944b-e07fc1f90ae7", "path": "/data" }]);
    let fetched = transfer(json!({ "mounts": mounts }), "fetch", &[]).unwrap();
    let wanted = Targets {
        source: None,
        write: Some("/c/0b0f1f3e-3c1e-4f43-9d2b-2c1c1f8f8f8f-part/archive?path=/".to_owned()),
        below: None,
        image: Vec::new(),
        kept: vec!["/data".to_owned()],
    };
    assert_eq!(fetched, wanted);
    assert_eq!(
        fetched.to_string(),
        "PUT /c/0b0f1f3e-3c1e-4f43-9d2b-2c1c1f8f8f8f-part/archive?path=/\n"
    );
    for (call, name, words) in [
        (
            "instance",
            "offer",
            "offer: only for a call that changes one instance",
        ),
        (
            "change",
            "fetch",
            "fetch: only for the call that creates an instance",
        ),
        (
            "move",
            "fetch",
            "fetch: only for the call that creates an instance",
        ),
    ] {
        let refusal = transfer(json!({ "call": call }), name, &[]);
        assert_eq!(refusal.unwrap_err(), words);
    }
}

#[test]
fn bodies_are_an_archive_or_the_mark() {
    let tables = "[request.r]\nabout = \"x\"\nmethod = \"PUT\"\npath = \"/r\"\n";
    let archive = write(
        &format!("{tables}calls = \"create\"\nbody = \"archive\""),
        &container(),
        &[],
    );
    match archive.unwrap().body {
        RenderedBody::Archive(files) => assert_eq!(files.len(), 2),
        other => panic!("{other:?}"),
    }
    let mark = write(
        &format!("{tables}calls = \"mark\"\nbody = \"{{mark}}\""),
        &json!({ "call": "mark" }),
        &[],
    );
    assert_eq!(
        mark.unwrap().body,
        RenderedBody::Json("\"5d1c5a5e-8e7c-4a57-9f0e-2f4b8f1f6a11\"".to_owned())
    );
}

const WRONG_SETTINGS: &str = r#"
    { "member": "A" } => member: "A" does not fit the pattern [a-z]+: The server's name.
    { "member": 5 } => member: must be text
    { "none": "somewhere" } => none: "somewhere" is not an IP address
    { "pids": 0 } => pids: must be at least 1
    { "pids": -1 } => pids: must be a whole number that is not negative
    { "dns": ["x"] } => dns: "x" is not an IP address
    { "dns": "10.0.0.1" } => dns: must be a list of IP addresses
    { "words": ["a", "1"] } => words: "1" does not fit the pattern [a-z]+: x
    { "words": [1] } => words: must be a list of texts
    { "limits": { "a": 0 } } => limits: a: must be at least 1
    { "limits": { "a": "x" } } => limits: a: must be a table of whole numbers that are not negative
"#;

#[test]
fn settings_have_their_types_and_forms() {
    let file = file(
        r#"
        [settings]
        member = { about = "The server's name.", type = "string", pattern = "[a-z]+" }
        none = { about = "x", type = "address", optional = true }
        pids = { about = "x", default = 5, min = 1 }
        at = { about = "x", type = "address", default = "0.0.0.0" }
        dns = { about = "x", type = "addresses", default = [] }
        words = { about = "x", default = [], pattern = "[a-z]+" }
        limits = { about = "x", default = {}, min = 1 }
        publish_cidr = { about = "x", default = "" }
        publish_from = { about = "x", default = 20000 }
        "#,
    )
    .unwrap();
    let bound = |mut given: serde_json::Value| {
        given
            .as_object_mut()
            .unwrap()
            .entry("member")
            .or_insert(json!("a"));
        Requests::new(&file, &given)
    };
    let requests = bound(json!({ "dns": ["2001:DB8::1"], "unknown": 1 })).unwrap();
    assert_eq!(requests.settings["dns"], json!(["2001:db8::1"]));
    assert!(requests.has_setting("none") && !requests.has_setting("unknown"));
    assert_eq!(
        Requests::new(&file, &json!({})).unwrap_err(),
        "member: required: The server's name."
    );
    assert_eq!(
        Requests::new(&file, &json!([])).unwrap_err(),
        "must be a table"
    );
    for (given, error) in rows(WRONG_SETTINGS) {
        let given = serde_json::from_str(&given).unwrap();
        assert_eq!(bound(given).unwrap_err(), error);
    }
    let range = bound(json!({ "publish_cidr": "198.18.0.1/18" })).unwrap_err();
    assert!(range.starts_with("publish_cidr: "), "{range}");
}

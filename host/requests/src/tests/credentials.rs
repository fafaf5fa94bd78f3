//! Requests with the operator's credentials for a registry.

use super::{file, rows, send};
use crate::{Purpose, RequestFile};
use serde_json::json;

const PULL: &str = r#"
    [settings.prefix]
    about = "x"
    default = "registry.example/w/"
    replaces = "localhost/wharf/"
    [request.r]
    about = "A test."
    method = "POST"
    path = "/pull"
    query = { image = "{image}" }
    calls = "create"
    job = true
    credentials = "image"
"#;

/// Changes of the request, and a part of the error.
const REFUSED: &str = r#"
    job = true -> => request.r.credentials: for a POST with `job = true`
    "POST" -> "PUT" => request.r.credentials: for a POST with `job = true`
    calls = "create" -> calls = "change" => request.r.credentials: only the call that creates an instance
    "{image}" -> "{hostname}" => request.r.credentials: the request must have {image}
    job = true -> job = true\narguments.a = { pattern = ".*" } => request.r.credentials: no argument may be free text
    "image" -> "mark" => unknown variant `mark`
    credentials = "image" -> headers = { X-Registry-Auth = "e30=" } => request.r.headers.X-Registry-Auth: the host writes it
    credentials = "image" -> headers = { x-registry-config = "{image}" } => request.r.headers.x-registry-config: the host writes it
"#;

fn pull() -> RequestFile {
    file(PULL).unwrap()
}

#[test]
fn the_name_of_the_registry_is_that_of_the_image_on_the_node() {
    for (image, registry) in [
        ("localhost/wharf/base:1", Some("registry.example")),
        ("localhost/team/base:1", Some("localhost")),
        (
            "Registry.example:5000/base:1",
            Some("registry.example:5000"),
        ),
        ("team/base:1", None),
    ] {
        let call = json!({ "images": [image] });
        let written = send(&pull(), "r", &call, &[], Purpose::Job).unwrap();
        let found = written.credentials.expect("credentials");
        assert_eq!(found.host(), registry, "{image}");
    }
    let shown = send(&pull(), "r", &json!({}), &[], Purpose::Show).unwrap();
    assert_eq!(
        shown.to_string(),
        "POST /pull?image=registry.example%2Fw%2Fbase%3A1\n\
         with the operator's credentials for registry.example, if there are any\n"
    );
}

#[test]
fn an_image_of_an_installed_plugin_gets_none() {
    let call = json!({ "image_is_trusted": false, "images": ["registry.example/secret:1"] });
    let written = send(&pull(), "r", &call, &[], Purpose::Job).unwrap();
    assert_eq!(written.credentials, None);
    assert!(!written.to_string().contains("credentials"));
}

#[test]
fn a_file_with_an_account_outside_of_pulls_is_refused() {
    for (change, words) in rows(REFUSED) {
        let (from, to) = change.split_once("->").unwrap();
        let (from, to) = (from.trim(), to.trim());
        assert!(PULL.contains(from), "{from}");
        let changed = match from {
            "\"image\"" => PULL.replace("= \"image\"", &format!("= {to}")),
            _ => PULL.replace(from, to),
        };
        let error = file(&changed).unwrap_err();
        assert!(error.contains(words), "{change}: {error}");
    }
}

#[test]
fn a_review_tells_of_them() {
    let words = pull().explain();
    let line = "with the operator's credentials for the registry of {image}, if the program or the operator names it";
    assert!(words.contains(line), "{words}");
}

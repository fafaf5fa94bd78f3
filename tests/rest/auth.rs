//! Section 5: authentication.

use crate::{start, uuid};
use wharf_tests::Api;

const PATHS: &[(&str, &str)] = &[
    ("GET", "/api/instance/"),
    ("POST", "/api/instance/"),
    ("GET", "/api/instance/some-name/"),
    ("PATCH", "/api/instance/some-name/"),
    ("DELETE", "/api/instance/some-name/"),
    ("POST", "/api/instance/some-name/stop/"),
    ("POST", "/api/instance/some-name/restart/"),
    ("POST", "/api/instance/some-name/add-port/"),
    ("POST", "/api/instance/some-name/remove-port/"),
    ("GET", "/api/instance/some-name/stats/"),
];

#[test]
fn every_endpoint_answers_401_without_a_valid_key() {
    let (server, api) = start();
    let almost = format!("{}x", api.key());
    let (id, _) = api.key().rsplit_once('_').unwrap();
    let other_secret = format!("{id}_{}", "A".repeat(43));
    for key in [
        "",
        "nonsense",
        "wharf__",
        "wharf_0000000000000000_AAAA",
        &almost,
        &other_secret,
    ] {
        let anonymous = Api::new(server.base_url(), key);
        for (method, path) in PATHS {
            // An invalid body: the key is checked first.
            let answer = anonymous
                .raw(method, path, Some(("text/plain", b"{")))
                .unwrap();
            assert_eq!(answer.status, 401, "{method} {path}: {answer:?}");
            assert!(
                answer
                    .header("www-authenticate")
                    .unwrap()
                    .starts_with("Bearer"),
                "{answer:?}"
            );
            assert!(answer.body["detail"].is_string(), "{answer:?}");
        }
    }
    server.finish().unwrap();
}

#[test]
fn a_wrong_key_reveals_nothing_about_paths() {
    let (server, _) = start();
    let anonymous = Api::new(server.base_url(), "");
    for path in ["/api/instance", "/api/nothing/", "/api/instance/a/b/c/"] {
        assert_eq!(anonymous.get(path).unwrap().status, 401, "{path}");
    }
    // No method of the route is named either.
    let answer = anonymous
        .raw("PUT", "/api/instance/a-b/stop/", None)
        .unwrap();
    assert_eq!((answer.status, answer.header("allow")), (401, None));
    server.finish().unwrap();
}

#[test]
fn another_owners_instance_is_404_everywhere_and_in_no_list() {
    let (server, ann) = start();
    let bob = server.user("bob@example.com").unwrap();
    let theirs = ann.small_container().unwrap();
    ann.wait_for(uuid(&theirs), "running").unwrap();
    assert!(bob.list().unwrap().is_empty());
    let name = theirs["name"].as_str().unwrap();
    for selector in [
        uuid(&theirs),
        name,
        "no-such-name",
        "0f8fad5b-d9cb-469f-a165-70867728950e",
    ] {
        for (method, path) in PATHS.iter().skip(2) {
            let path = path.replace("some-name", selector);
            let body = match *method {
                "PATCH" => serde_json::json!({}),
                "POST" if path.ends_with("port/") => serde_json::json!({ "port": 80 }),
                _ => serde_json::Value::Null,
            };
            let answer = bob.send(method, &path, &body).unwrap();
            assert_eq!(answer.status, 404, "{method} {path}: {answer:?}");
        }
    }
    assert_eq!(ann.instance(name).unwrap().status, 200);
    server.finish().unwrap();
}

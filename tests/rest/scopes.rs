//! The scopes of keys: an answer has the parts that its caller may read.

use crate::sign_in::{ANN, ConsoleBrowser};
use crate::{Expected, made, running, start, start_under, uuid, with};
use serde_json::{Value, json};
use wharf_tests::{Answer, Api, Server, small};

const PASSWORD: &str = "original_service_password";

/// A key of the user with these scopes.
pub fn key(server: &Server, scopes: &[&str]) -> Api {
    let mut args = vec!["key", "new", ANN];
    args.extend(scopes.iter().flat_map(|scope| ["--scope", scope]));
    Api::new(server.base_url(), server.cli(&args).unwrap().trim())
}

fn etag(answer: &Answer) -> String {
    answer.header("etag").unwrap().to_owned()
}

#[test]
fn a_reader_sees_no_password_and_no_cache_keeps_one() {
    let (server, ann) = start();
    let created = running(&ann);
    let password = created[PASSWORD].as_str().unwrap();
    assert!(!password.is_empty());
    let reader = key(&server, &["read"]);
    let one = format!("/api/instance/{}/", uuid(&created));
    let mut tags = Vec::new();
    // The list of each key is kept as rendered, so each key reads it twice, in turn.
    for path in [&one, "/api/instance/", "/api/instance/?limit=1"] {
        for _ in 0..2 {
            for (api, expected, cache) in [
                (&ann, password, "no-store"),
                (&reader, "", "private, no-cache"),
            ] {
                let answer = api.get(path).unwrap();
                let shown = match &answer.body {
                    Value::Array(list) => &list[0],
                    instance => instance,
                };
                assert_eq!(shown[PASSWORD], expected, "{path}");
                assert_eq!(shown["uuid"], created["uuid"]);
                assert_eq!(answer.header("cache-control"), Some(cache), "{path}");
                tags.push(etag(&answer));
            }
        }
        let [whole, read] = [&tags[tags.len() - 2], &tags[tags.len() - 1]];
        assert_ne!(whole, read, "{path}");
        for (api, tag, status) in [
            (&ann, whole, 304),
            (&ann, read, 200),
            (&reader, read, 304),
            (&reader, whole, 200),
        ] {
            let headers = [("If-None-Match", tag.as_str())];
            let answer = api.send_with("GET", path, &headers, &Value::Null);
            assert_eq!(answer.unwrap().status, status, "{path}");
        }
    }
    // The tag that a reader has read is a condition of a writer's change.
    let tag = etag(&reader.get(&one).unwrap());
    let rename = |tag: &str, name: &str| {
        let headers = [("If-Match", tag)];
        ann.send_with("PATCH", &one, &headers, &json!({ "name": name }))
    };
    rename(&tag, "renamed").is(200);
    rename(&tag, "again").is(412);
}

#[test]
fn a_writer_without_read_sees_the_id_and_the_state_of_its_changes_only() {
    let (server, ann) = start();
    let writer = key(&server, &["write"]);
    let only = |answer: anyhow::Result<Answer>, status: u16, state: &str| {
        let body = answer.is(status);
        assert_eq!(body["state"], state);
        let fields: Vec<_> = body.as_object().unwrap().keys().collect();
        assert_eq!(fields, ["state", "uuid"]);
        body["uuid"].as_str().unwrap().to_owned()
    };
    let headers = [("Idempotency-Key", "once")];
    let create = || writer.send_with("POST", "/api/instance/", &headers, &small("vm"));
    let id = only(create(), 201, "provisioning");
    assert_eq!(only(create(), 201, "provisioning"), id);
    ann.wait_for(&id, "running").unwrap();
    let path = format!("/api/instance/{id}/");
    assert_eq!(writer.get(&path).unwrap().status, 403);
    let update = |body: Value| writer.send("PATCH", &path, &body);
    only(update(json!({})), 200, "running");
    only(update(json!({ "name": "hidden" })), 200, "running");
    let port = json!({ "port": 8080 });
    for action in ["add-port", "remove-port"] {
        let answer = writer.send("POST", &format!("{path}{action}/"), &port);
        only(answer, 200, "running");
    }
    only(writer.act(&id, "stop"), 200, "shut_off");
    only(writer.act(&id, "restart"), 200, "running");
    let settings = writer.send("PATCH", "/api/preferences/", &json!({}));
    assert_eq!(settings.is(200), json!({}));
    // A webhook would bring all events.
    let hook = json!({ "url": "https://example.com/hook" });
    let answer = writer.send("POST", "/api/webhook/", &hook).is(403);
    assert_eq!(answer["detail"], "This API key lacks the scope `read`.");
}

#[test]
fn a_writer_without_read_sees_the_id_of_a_share_that_it_changes_only() {
    let pages = "[pages]\ndomain = \"apps.localhost\"\nlisten = \"127.0.0.1:0\"\n";
    let (server, ann) = start_under(pages, "");
    let body = with("container", json!({ "flavor": "marimo", "name": "demo" }));
    let created = made(&ann, &body);
    let shares = format!("/api/instance/{}/share/", uuid(&created));
    let page = format!("{shares}page/");
    let bob = json!({ "access": "users", "users": ["bob@example.com"] });
    let writer = key(&server, &["write"]);
    let made = writer.send("POST", &shares, &bob).is(201);
    assert_eq!(made, json!({ "id": "page" }));
    for body in [json!({}), bob] {
        let changed = writer.send("PATCH", &page, &body).is(200);
        assert_eq!(changed, json!({ "id": "page" }));
    }
    assert_eq!(writer.get(&shares).unwrap().status, 403);
    let shown = ann.send("PATCH", &page, &json!({})).is(200);
    assert_eq!(shown["users"], json!(["bob@example.com"]));
    assert_eq!(ann.get(&shares).is(200), json!([shown]));
    writer.send("DELETE", &page, &Value::Null).is(204);
}

#[test]
fn only_the_operator_gives_the_scope_of_metrics() {
    let (server, ann) = start();
    let browser = ConsoleBrowser::accepted(&server, ANN);
    assert_eq!(browser.get("/metrics").status, 403);
    // The operator's keys have it, and the keys that they make do not.
    assert_eq!(ann.get("/metrics").unwrap().status, 200);
    assert_eq!(
        key(&server, &["metrics"]).get("/metrics").unwrap().status,
        200
    );
    let monitor = key(&server, &["metrics"]);
    for (method, path) in [
        ("GET", "/api/instance/"),
        ("POST", "/api/instance/"),
        ("GET", "/api/audit/"),
        ("POST", "/api/key/"),
        ("POST", "/api/estimate/"),
        ("PATCH", "/api/preferences/"),
        ("DELETE", "/api/ssh-key/none/"),
        ("POST", "/api/webhook/"),
    ] {
        monitor.send(method, path, &json!({})).is(403);
    }
    let wanted = json!({ "scopes": ["read", "metrics"] });
    let refused = ann.send("POST", "/api/key/", &wanted).is(400);
    let message = refused["scopes"][0].as_str().unwrap();
    assert!(message.contains("operator"), "{message}");
    browser.send("POST", "/api/key/", &wanted).is(400);
    let code = json!({ "user_code": "BCDF-GHJK", "scopes": ["metrics"] });
    let refused = browser.send("POST", "/auth/device/approve/", &code).is(400);
    assert!(refused["scopes"].is_array(), "{refused}");
    for made in [
        ann.send("POST", "/api/key/", &json!({})).unwrap(),
        browser.send("POST", "/api/key/", &json!({})),
    ] {
        let made = made.is(201);
        assert_eq!(made["scopes"], json!(["read", "write"]));
        let made = Api::new(server.base_url(), made["key"].as_str().unwrap());
        assert_eq!(made.get("/metrics").unwrap().status, 403);
    }
}

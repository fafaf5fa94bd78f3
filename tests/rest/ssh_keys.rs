//! `/api/ssh-key/`: saved SSH public keys.

use crate::start;
use serde_json::{Value, json};
use wharf_tests::{Answer, Api};

const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFIkGWuBbBTx9nTEHwsrBJV4jF7lFQyMDmE6pDnoO4Yg";

fn save(api: &Api, name: &str, public_key: &str) -> Answer {
    let body = json!({ "name": name, "public_key": public_key });
    api.send("POST", "/api/ssh-key/", &body).unwrap()
}

fn list(api: &Api) -> Vec<Value> {
    let keys = api.get("/api/ssh-key/").unwrap().expect(200).unwrap();
    keys.as_array().unwrap().clone()
}

fn delete(api: &Api, id: &Value) -> Answer {
    let path = format!("/api/ssh-key/{}/", id.as_str().unwrap());
    api.send("DELETE", &path, &Value::Null).unwrap()
}

#[test]
fn keys_are_saved_listed_and_deleted_for_their_user_only() {
    let (mut server, ann) = start();
    let bob = server.user("bob@example.com").unwrap();
    let loose = format!("  {} ann@laptop\n", KEY.replace(' ', "  "));
    let saved = save(&ann, "laptop", &loose).expect(201).unwrap();
    assert_eq!(saved["public_key"], json!(format!("{KEY} ann@laptop")));
    let fingerprint = "SHA256:n3knDmyg+2a+JK29xhPEqIjEG265QrXR41UylNzOSOs";
    assert_eq!(saved["fingerprint"], fingerprint);
    let second = save(&ann, "desktop", KEY).expect(201).unwrap();
    assert_eq!(list(&ann), [saved.clone(), second.clone()]);
    assert!(list(&bob).is_empty());
    // A name is the user's own.
    assert_eq!(save(&bob, "laptop", KEY).status, 201);
    assert_eq!(delete(&bob, &saved["id"]).status, 404);
    assert_eq!(delete(&ann, &json!("no-such-key")).status, 404);
    assert_eq!(delete(&ann, &saved["id"]).status, 204);
    assert_eq!(delete(&ann, &saved["id"]).status, 404);
    // The name is free again, and all of it is durable.
    let third = save(&ann, "laptop", KEY).expect(201).unwrap();
    server.kill().unwrap();
    server.run().unwrap();
    let ann = server.again(&ann);
    assert_eq!(list(&ann), [second, third]);
    let audit = ann.get("/api/audit/").unwrap().expect(200).unwrap();
    let of_key = |operation: &str| {
        let records = audit.as_array().unwrap().iter();
        let mine = records.filter(|record| record["operation"] == operation);
        mine.map(|record| record["subject"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(of_key("ssh-key.save").len(), 3);
    assert_eq!(of_key("ssh-key.delete"), [saved["id"].clone()]);
    // The key is one that create takes.
    let mut body = wharf_tests::small("container");
    body["public_key"] = list(&ann)[0]["public_key"].clone();
    assert_eq!(ann.create(&body).unwrap().status, 201);
    server.finish().unwrap();
}

#[test]
fn wrong_names_and_lines_are_refused() {
    let (server, api) = start();
    save(&api, "taken", KEY).expect(201).unwrap();
    for (name, line, field) in [
        ("taken", KEY, "name"),
        ("", KEY, "name"),
        ("two\nlines", KEY, "name"),
        (&"x".repeat(65), KEY, "name"),
        ("good", "hello", "public_key"),
        ("good", &format!("{KEY}\n{KEY}"), "public_key"),
        ("good", &format!("command=\"id\" {KEY}"), "public_key"),
        ("good", "-----BEGIN OPENSSH PRIVATE KEY-----", "public_key"),
        ("good", &KEY[..KEY.len() - 4], "public_key"),
    ] {
        let answer = save(&api, name, line);
        assert_eq!(answer.status, 400, "{name} {line}: {answer:?}");
        assert!(answer.body[field].is_array(), "{name} {line}: {answer:?}");
    }
    let both = api
        .send("POST", "/api/ssh-key/", &json!({ "id": 1 }))
        .unwrap();
    for field in ["name", "public_key", "id"] {
        assert!(both.body[field].is_array(), "{both:?}");
    }
    // Create refuses a line with equal words.
    let mut body = wharf_tests::small("container");
    body["public_key"] = json!("hello");
    let refused = api.create(&body).unwrap();
    assert_eq!(
        save(&api, "good", "hello").body["public_key"],
        refused.body["public_key"]
    );
    assert_eq!(save(&api, &"x".repeat(64), KEY).status, 201);
    server.finish().unwrap();
}

#[test]
fn a_user_saves_fifty_keys_at_most_and_a_reader_none() {
    let (server, api) = start();
    for n in 0..50 {
        save(&api, &format!("key {n}"), KEY).expect(201).unwrap();
    }
    let refused = save(&api, "one too many", KEY);
    assert!(refused.body["non_field_errors"].is_array(), "{refused:?}");
    assert_eq!(list(&api).len(), 50);
    let reader = server
        .cli(&["key", "new", "ann@example.com", "--scope", "read"])
        .unwrap();
    let reader = Api::new(server.base_url(), reader.trim());
    assert_eq!(list(&reader).len(), 50);
    assert_eq!(save(&reader, "mine", KEY).status, 403);
    server.finish().unwrap();
}

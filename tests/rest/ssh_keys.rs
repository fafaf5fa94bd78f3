//! `/api/ssh-key/`: saved SSH public keys.

use crate::{Expected, kill, recorded, start};
use serde_json::{Value, json};
use wharf_tests::{Answer, Api};

const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFIkGWuBbBTx9nTEHwsrBJV4jF7lFQyMDmE6pDnoO4Yg";

fn save(api: &Api, name: &str, public_key: &str) -> Answer {
    let body = json!({ "name": name, "public_key": public_key });
    api.send("POST", "/api/ssh-key/", &body).unwrap()
}

fn list(api: &Api) -> Vec<Value> {
    let keys = api.get("/api/ssh-key/").is(200);
    keys.as_array().unwrap().clone()
}

#[test]
fn keys_are_durable_and_each_change_has_an_audit_record() {
    let (mut server, ann) = start();
    let first = save(&ann, "laptop", KEY).is(201);
    let second = save(&ann, "desktop", KEY).is(201);
    let path = format!("/api/ssh-key/{}/", first["id"].as_str().unwrap());
    ann.send("DELETE", &path, &Value::Null).is(204);
    let third = save(&ann, "laptop", KEY).is(201);
    let ann = kill(&mut server, &ann);
    assert_eq!(list(&ann), [second, third]);
    assert_eq!(recorded(&ann, "ssh-key.save").len(), 3);
    let deleted = recorded(&ann, "ssh-key.delete");
    assert_eq!(deleted.len(), 1);
    assert_eq!(deleted[0]["subject"], first["id"]);
}

#[test]
fn a_user_saves_fifty_keys_at_most_and_a_reader_none() {
    let (server, api) = start();
    for n in 0..50 {
        save(&api, &format!("key {n}"), KEY).is(201);
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
}

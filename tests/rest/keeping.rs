//! The rows that users make the server keep: a budget for those of a day, and the end of dead keys.

use crate::bill::fake_clock;
use crate::sign_in::{ANN, ConsoleBrowser, PASSWORD};
use crate::{Expected, start_on, time, until_true, uuid};
use serde_json::{Value, json};
use wharf_tests::{Answer, Api, Server, simulated_node, small};

const BOB: &str = "bob@example.com";

fn new_key(api: &Api, body: &Value) -> Answer {
    api.send("POST", "/api/key/", body).unwrap()
}

fn listed(server: &Server) -> usize {
    server.cli(&["key", "list"]).unwrap().lines().count()
}

#[test]
fn a_user_beyond_the_budget_of_a_day_is_a_429_and_may_end_everything() {
    let node = simulated_node("one", "");
    let limits = "[limits]\nrecords_per_user_per_day = 60\n";
    let (server, ann) = start_on(limits, &node);
    let bob = server.user(BOB).unwrap();
    let mut browser = ConsoleBrowser::accepted(&server, ANN);
    let running = ann.small_container().unwrap();
    let stopped = ann.small_container().unwrap();
    let (running, stopped) = (uuid(&running).to_owned(), uuid(&stopped).to_owned());
    for id in [&running, &stopped] {
        ann.wait_for(id, "running").unwrap();
    }
    ann.act(&stopped, "stop").is(200);
    let key = new_key(&ann, &json!({ "name": "mine" })).is(201);
    let hook = json!({ "url": "https://receiver.example.org/" });
    let hook = ann.send("POST", "/api/webhook/", &hook).is(201);
    let refused = (0..60).find_map(|n| {
        let body = json!({ "name": format!("renamed-{n}") });
        let path = format!("/api/instance/{running}/");
        let answer = ann.send("PATCH", &path, &body).unwrap();
        (answer.status != 200).then_some(answer)
    });
    let refused = refused.expect("no rename was refused");
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    // A row is regained in 24 minutes, and a rename leaves two.
    assert!((1..=2880).contains(&wait), "{wait}");
    let detail = refused.is(429)["detail"].to_string();
    assert!(detail.contains("budget for a day"), "{detail}");
    let test = format!("/api/webhook/{}/test/", hook["id"].as_str().unwrap());
    for (path, body) in [
        ("/api/instance/", small("container")),
        ("/api/key/", json!({})),
        (&*format!("/api/instance/{stopped}/restart/"), Value::Null),
        (&*test, Value::Null),
    ] {
        assert_eq!(ann.send("POST", path, &body).unwrap().status, 429, "{path}");
    }
    // Others go on, and so do reads, stops, deletions, revocations and sign-ins.
    bob.small_container().unwrap();
    assert_eq!(ann.list().unwrap().len(), 2);
    ann.act(&running, "stop").is(200);
    let delete = |path: &str, id: &Value| {
        let path = format!("{path}{}/", id.as_str().unwrap());
        ann.send("DELETE", &path, &Value::Null).is(204);
    };
    delete("/api/key/", &key["id"]);
    delete("/api/webhook/", &hook["id"]);
    browser.sign_in(PASSWORD);
    browser
        .send("POST", "/auth/sign-out/", &Value::Null)
        .is(204);
    for id in [&running, &stopped] {
        ann.delete(id).is(204);
    }
}

#[test]
fn expired_keys_make_room_for_new_ones_and_are_gone() {
    let (server, ann) = start_on("", &simulated_node("one", ""));
    let expiring = json!({ "expires_at": time("8 seconds") });
    for _ in 1..100 {
        new_key(&ann, &expiring).is(201);
    }
    let refused = new_key(&ann, &json!({})).is(400);
    assert!(refused["non_field_errors"].is_array(), "{refused}");
    assert_eq!(listed(&server), 100);
    until_true("an expired key makes room", || {
        new_key(&ann, &json!({})).status == 201
    });
    assert_eq!(listed(&server), 2);
    let own = ann.get("/api/key/").is(200);
    assert_eq!(own.as_array().unwrap().len(), 2);
}

#[test]
fn dead_keys_are_removed_after_a_while_and_the_audit_log_has_them() {
    let Some(clock) = fake_clock() else { return };
    clock.set("-31d").unwrap();
    let mut server = clock.server("").unwrap();
    let ann = server.user(ANN).unwrap();
    let revoked = new_key(&ann, &json!({ "name": "revoked" })).is(201);
    let path = format!("/api/key/{}/", revoked["id"].as_str().unwrap());
    ann.send("DELETE", &path, &Value::Null).is(204);
    let expiring = json!({ "name": "expired", "expires_at": time("732 hours ago") });
    new_key(&ann, &expiring).is(201);
    assert_eq!(listed(&server), 3);
    server.terminate().unwrap();
    clock.set("+0").unwrap();
    server.cli(&["clock", "adopt"]).unwrap();
    // This key ends now, and is kept.
    let late = server.cli(&["key", "new", ANN, "--name", "late"]).unwrap();
    let late = late.trim().split('_').nth(1).unwrap().to_owned();
    server.cli(&["key", "revoke", &late]).unwrap();
    server.run().unwrap();
    let ann = server.again(&ann);
    until_true("the dead keys are removed", || listed(&server) == 2);
    let list = server.cli(&["key", "list"]).unwrap();
    assert!(list.contains("late"), "{list}");
    let audit = ann.get("/api/audit/").is(200);
    let records = audit.as_array().unwrap().iter();
    let of_revoked: Vec<_> = records
        .filter(|record| record["subject"] == revoked["id"])
        .map(|record| record["operation"].as_str().unwrap())
        .collect();
    assert_eq!(of_revoked, ["key.new", "key.revoke"]);
    server.terminate().unwrap();
    server.cli(&["fsck"]).unwrap();
    server.run().unwrap();
}

//! The audit log: `GET /api/audit/` and `wharf audit`.

use crate::bill::fake_clock;
use crate::{Expected, edit, start, until_true, uuid, walk, with};
use serde_json::{Value, json};
use wharf_tests::Api;

fn records(api: &Api) -> Vec<Value> {
    let body = api.get("/api/audit/").is(200);
    body.as_array().unwrap().clone()
}

#[test]
fn each_change_has_a_record_with_its_actor_and_request() {
    let (server, ann) = start();
    let bob = server.user("bob@example.com").unwrap();
    let body = with("vm", json!({ "name": "box" }));
    let send = |method: &str, path: &str, id: &str, body: &Value| {
        let path = format!("/api/instance/{path}");
        ann.send_with(method, &path, &[("X-Request-Id", id)], body)
            .unwrap()
    };
    let created = send("POST", "", "the-create", &body).is(201);
    ann.wait_for("box", "running").unwrap();
    send("PATCH", "box/", "the-rename", &json!({ "name": "crate" })).is(200);
    send(
        "POST",
        "crate/add-port/",
        "the-port",
        &json!({ "port": 80 }),
    )
    .is(200);
    // Refused requests and those that change nothing have no record.
    send("PATCH", "crate/", "nothing", &json!({})).is(200);
    send("POST", "crate/add-port/", "nothing", &json!({ "port": 80 })).is(200);
    send("POST", "crate/restart/", "refused", &Value::Null).is(400);
    send("POST", "crate/stop/", "the-stop", &Value::Null).is(200);
    send("POST", "crate/restart/", "the-restart", &Value::Null).is(200);
    send("DELETE", "crate/", "the-delete", &Value::Null).is(204);
    let records = records(&ann);
    let key = ann.key().split('_').nth(1).unwrap();
    let shown: Vec<_> = records[1..]
        .iter()
        .map(|r| {
            assert_eq!(r["actor"], format!("key:{key}"));
            assert_eq!(r["peer"], "127.0.0.1");
            assert_eq!(r["instance"], created["uuid"]);
            let text = |field: &str| r[field].as_str().unwrap();
            (text("operation"), text("request_id"), text("result"))
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("instance.create", "the-create", "provisioning"),
            ("instance.update", "the-rename", "running"),
            ("instance.ports", "the-port", "running"),
            ("instance.stop", "the-stop", "shut_off"),
            ("instance.restart", "the-restart", "running"),
            ("instance.delete", "the-delete", "deleted"),
        ]
    );
    server
        .cli(&["user", "limit", "ann@example.com", "--instances", "9"])
        .unwrap();
    let limited = self::records(&ann).pop().unwrap();
    assert_eq!(limited["operation"], "user.limit");
    assert_eq!(limited["actor"], "operator");
    assert_eq!(records[0]["operation"], "key.new");
    assert_eq!(records[0]["actor"], "operator");
    // Bob has his own key's record only, and the operator has all.
    assert_eq!(self::records(&bob).len(), 1);
    let all = server.cli(&["audit", "list"]).unwrap();
    assert_eq!(all.lines().count(), 9, "{all}");
    let bobs = server
        .cli(&["audit", "list", "--user", "bob@example.com"])
        .unwrap();
    assert_eq!(bobs.lines().count(), 1, "{bobs}");
    assert_eq!(
        server
            .cli(&["audit", "list", "--since", "2099-01-01"])
            .unwrap(),
        ""
    );
    assert!(all.contains("the-restart") && all.contains("ann@example.com"));
    for secret in [
        ann.key(),
        created["original_service_password"].as_str().unwrap(),
    ] {
        assert!(!all.contains(secret));
    }
}

#[test]
fn records_are_paged() {
    let (server, api) = start();
    for _ in 0..4 {
        api.small_container().unwrap();
    }
    // Records of others are before and behind.
    let bob = server.user("bob@example.com").unwrap();
    bob.small_container().unwrap();
    let all = |query: &str| {
        let records = walk(&api, &format!("/api/audit/?limit=2{query}"));
        let ids = records.iter().map(|r| r["id"].as_u64().unwrap());
        ids.collect::<Vec<_>>()
    };
    let mut ids = all("");
    assert!(ids.len() == 5 && ids.is_sorted(), "{ids:?}");
    assert_eq!(all("&order=oldest"), ids);
    ids.reverse();
    assert_eq!(all("&order=newest"), ids);
}

#[test]
fn verify_knows_an_earlier_end_also_after_kill_9() {
    let (mut server, api) = start();
    api.small_container().unwrap();
    let end = server.cli(&["audit", "verify"]).unwrap().trim().to_owned();
    assert!(end.starts_with("2:"), "{end}");
    let created = api.small_container().unwrap();
    assert!(!uuid(&created).is_empty());
    server.kill().unwrap();
    // The record is durable with its change.
    let later = server.cli(&["audit", "verify", "--end", &end]).unwrap();
    assert!(later.starts_with("3:"), "{later}");
    server.run().unwrap();
    let other = format!("2:{}", "0".repeat(64));
    for wrong in [other.as_str(), "9:00", "x"] {
        assert!(
            server.cli(&["audit", "verify", "--end", wrong]).is_err(),
            "{wrong}"
        );
    }
}

#[test]
fn old_records_are_removed_and_the_chain_stays_verifiable() {
    let Some(clock) = fake_clock() else { return };
    clock.set("-70d").unwrap();
    let mut server = clock.server("").unwrap();
    let ann = server.user("ann@example.com").unwrap();
    for _ in 0..3 {
        ann.small_container().unwrap();
    }
    let end = server.cli(&["audit", "verify"]).unwrap().trim().to_owned();
    let early = server.cli(&["audit"]).unwrap();
    assert!(
        end.starts_with("4:") && early.lines().count() == 4,
        "{end} {early}"
    );
    server.terminate().unwrap();
    clock.set("+0").unwrap();
    let retention = "[retention]\naudit_days = 30\n[ssh_ports]";
    edit(&server, "[ssh_ports]", retention);
    // The clock's record is the newest.
    server.cli(&["clock", "adopt"]).unwrap();
    server.run().unwrap();
    until_true("the old records are removed", || {
        server.cli(&["audit"]).unwrap().lines().count() == 1
    });
    let left = server.cli(&["audit", "list"]).unwrap();
    assert!(left.starts_with("5\t"), "{left}");
    assert!(records(&server.again(&ann)).is_empty());
    // The last removed record is the anchor, and later ones are still found.
    let later = server.cli(&["audit", "verify", "--end", &end]).unwrap();
    assert!(later.starts_with("5:"), "{later}");
    let other = format!("4:{}", "0".repeat(64));
    assert!(server.cli(&["audit", "verify", "--end", &other]).is_err());
    server.again(&ann).small_container().unwrap();
    server
        .cli(&["audit", "verify", "--end", later.trim()])
        .unwrap();
    assert!(server.cli(&["audit"]).unwrap().contains("instance.create"));
}

//! The life of a snapshot: its requests, quotas, claims, and its end with its instance.

use super::{
    all, clone, count, delete, events, one, path, ready, restore, stop, stopped, take, until_event,
    until_free, until_state, used,
};
use crate::fsck::{bytes, edit};
use crate::{Expected, has, running, start, start_on, start_with, uuid, wait_until};
use serde_json::{Value, json};
use wharf_tests::{Api, simulated_node};

const ANN: &str = "ann@example.com";

#[test]
fn a_snapshot_is_taken_listed_and_deleted() {
    let (server, api) = start();
    let instance = running(&api);
    let created = take(&api, &instance, "before").is(201);
    let disk = &instance["disk_size_gib"];
    for (field, value) in [
        ("name", &json!("before")),
        ("instance", &instance["uuid"]),
        ("instance_name", &instance["name"]),
        ("disk_size_gib", disk),
        ("storage_cost_hourly_usd", &json!(0.00014)),
        ("planned", &json!(false)),
        ("clonable", &json!(false)),
        ("size_gib", &Value::Null),
        ("ready_at", &Value::Null),
        ("reason", &Value::Null),
    ] {
        assert_eq!(created[field], *value, "{field}");
    }
    let ready = until_state(&api, &created, "ready");
    // The simulated engine says a tenth of the disk.
    assert_eq!(ready["size_gib"], 1);
    assert_eq!(ready["clonable"], true);
    assert!(ready["ready_at"].is_string());
    assert_eq!(all(&api), std::slice::from_ref(&ready));
    let upper = ready["id"].as_str().unwrap().to_uppercase();
    let found = api.get(&format!("/api/snapshot/{upper}/")).is(200);
    assert_eq!(found, ready);
    assert_eq!(
        (used(&api, "n_snapshots"), used(&api, "snapshot_gib")),
        (1, 1)
    );
    let taken = take(&api, &instance, "before").is(400);
    assert_eq!(taken["name"], json!(["is already taken"]));

    delete(&api, &ready).is(204);
    has(
        delete(&api, &ready).is(404)["detail"].as_str().unwrap(),
        "Snapshot",
    );
    one(&api, &ready).is(404);
    assert!(all(&api).is_empty());
    until_free(&api);
    assert_eq!(used(&api, "snapshot_gib"), 0);
    let kinds = events(&api, &instance);
    let own: Vec<_> = kinds.iter().filter(|k| k.starts_with("snap")).collect();
    let expected = ["created", "ready", "deleted"].map(|kind| format!("snapshot-{kind}"));
    assert_eq!(own, expected.iter().collect::<Vec<_>>());
    let log = api.get("/api/audit/").is(200).to_string();
    for operation in ["snapshot.create", "snapshot.delete"] {
        has(&log, operation);
    }
    server.finish().unwrap();
}

#[test]
fn events_of_snapshots_have_both_ids_and_their_own_state() {
    let (server, api) = start();
    let instance = running(&api);
    let taken = ready(&api, &instance, "before");
    let event = until_event(&api, &instance, "snapshot-ready");
    assert_eq!(event["snapshot"], taken["id"]);
    assert_eq!(event["volume"], Value::Null);
    assert_eq!(event["name"], "before");
    assert_eq!(event["state"], "ready");
    assert_eq!(event["disk_size_gib"], 1);
    assert_eq!(event["n_vcpus"], Value::Null);
    assert_eq!(event["actor"]["kind"], "node");
    let event = until_event(&api, &instance, "snapshot-created");
    assert_eq!(event["state"], "creating");
    assert_eq!(event["actor"]["kind"], "key");
    // The list of one instance leaves them out.
    let path = format!("/api/event/?after=0&instance={}", uuid(&instance));
    let listed = api.get(&path).is(200);
    let listed = listed.as_array().unwrap();
    assert!(listed.iter().any(|event| event["type"] == "ready"));
    assert!(listed.iter().all(|event| event["snapshot"].is_null()));
    let id = taken["id"].as_str().unwrap();
    has(server.cli(&["events", id]).unwrap(), "snapshot-ready");
    server.finish().unwrap();
}

#[test]
fn a_snapshot_without_a_name_has_the_time() {
    let (server, api) = start();
    let instance = running(&api);
    let take = || {
        let path = format!("/api/instance/{}/snapshot/", uuid(&instance));
        api.send("POST", &path, &json!({})).is(201)
    };
    let (first, second) = (take(), take());
    let name = first["name"].as_str().unwrap();
    assert_eq!(name.len(), "snapshot-20261127-184512".len(), "{name}");
    has(name, "snapshot-2");
    assert_ne!(first["name"], second["name"]);
    server.finish().unwrap();
}

#[test]
fn wrong_requests_are_refused_with_their_reason() {
    let (server, api) = start();
    let instance = running(&api);
    let detail = |answer: Value| answer["detail"].as_str().unwrap().to_owned();
    for (body, field) in [
        (json!({ "name": "-x" }), "name"),
        (json!({ "name": 7 }), "name"),
        (json!({ "state": "ready" }), "state"),
        (json!({ "colour": "blue" }), "colour"),
    ] {
        let path = format!("/api/instance/{}/snapshot/", uuid(&instance));
        let refused = api.send("POST", &path, &body).is(400);
        assert!(refused[field].is_array(), "{refused}");
    }
    let taken = ready(&api, &instance, "before");
    has(detail(restore(&api, &taken, false).is(400)), "exited");
    let restore_path = format!("{}restore/", path(&taken));
    let wrong = api.send("POST", &restore_path, &json!({ "snapshot_first": 1 }));
    assert!(wrong.is(400)["snapshot_first"].is_array());
    for (body, field) in [
        (json!({ "keep": 3 }), "every_h"),
        (json!({ "every_h": 0, "keep": 3 }), "every_h"),
        (json!({ "every_h": 8761, "keep": 3 }), "every_h"),
        (json!({ "every_h": 1, "keep": 33 }), "keep"),
        (
            json!({ "every_h": 1, "keep": 3, "keep_days": 0 }),
            "keep_days",
        ),
    ] {
        let path = format!("/api/instance/{}/snapshot-plan/", uuid(&instance));
        let refused = api.send("PUT", &path, &body).is(400);
        assert!(refused[field].is_array(), "{refused}");
    }
    let vm = api.create(&wharf_tests::small("vm")).is(201);
    let vm = api.wait_for(uuid(&vm), "running").unwrap();
    has(detail(take(&api, &vm, "vm").is(400)), "VM");
    // Those of others are not found, whatever the request.
    let bob = server.user("bob@example.com").unwrap();
    one(&bob, &taken).is(404);
    delete(&bob, &taken).is(404);
    restore(&bob, &taken, false).is(404);
    clone(&bob, &taken).is(404);
    take(&bob, &instance, "-x").is(404);
    let of = format!("/api/snapshot/?instance={}", uuid(&instance));
    bob.get(&of).is(404);
    assert!(all(&bob).is_empty());
    server.finish().unwrap();
}

#[test]
fn an_engine_without_snapshots_is_named() {
    let (server, api) = start_with("snapshots = \"none\"");
    let instance = running(&api);
    let refused = take(&api, &instance, "before").is(400);
    has(refused["detail"].as_str().unwrap(), "simulated");
    let estimate = format!("/api/instance/{}/snapshot-estimate/", uuid(&instance));
    api.get(&estimate).is(400);
    server.finish().unwrap();
}

#[test]
fn the_estimate_tells_of_time_and_freeze() {
    for (kind, frozen) in [("shared", false), ("copied", true)] {
        let (server, api) = start_with(&format!("snapshots = \"{kind}\""));
        let instance = running(&api);
        let estimate = format!("/api/instance/{}/snapshot-estimate/", uuid(&instance));
        let told = api.get(&estimate).is(200);
        assert_eq!(told["frozen"], frozen);
        assert!(told["seconds"].as_u64().unwrap() >= 1);
        let (size, rate) = (&told["size_gib"], &told["storage_cost_hourly_usd"]);
        let hourly = size.as_f64().unwrap() * rate.as_f64().unwrap();
        assert!((told["hourly_usd"].as_f64().unwrap() - hourly).abs() < 1e-9);
        stop(&api, &instance);
        let told = api.get(&estimate).is(200);
        assert_eq!(told["frozen"], false);
        assert_eq!(told["size_gib"], instance["disk_size_gib"]);
        server.finish().unwrap();
    }
}

#[test]
fn a_retry_with_the_idempotency_key_takes_nothing_twice() {
    let (server, api) = start();
    let (instance, other) = (running(&api), running(&api));
    let send = |path: &str, body: &Value| {
        let headers = [("Idempotency-Key", "k1")];
        api.send_with("POST", path, &headers, body).unwrap()
    };
    let path_of = |instance: &Value| format!("/api/instance/{}/snapshot/", uuid(instance));
    let (path, body) = (path_of(&instance), json!({ "name": "before" }));
    let first = send(&path, &body).is(201);
    let again = send(&path, &body).is(201);
    assert_eq!(first["id"], again["id"]);
    assert_eq!(again["state"], "creating");
    send(&path, &json!({ "name": "other" })).is(422);
    // A key belongs to one instance too.
    send(&path_of(&other), &body).is(422);
    assert_eq!(all(&api).len(), 1);
    let taken = until_state(&api, &first, "ready");
    let clone_path = format!("{}clone/", super::path(&taken));
    let mut body = wharf_tests::small("container");
    let fields = body.as_object_mut().unwrap();
    fields.retain(|name, _| !["flavor", "resource_type"].contains(&name.as_str()));
    let made = send(&clone_path, &body).is(201);
    assert_eq!(send(&clone_path, &body).is(201)["uuid"], made["uuid"]);
    server.finish().unwrap();
}

#[test]
fn keys_see_and_change_snapshots_by_their_scopes() {
    let (server, api) = start();
    let key = |scope: &str| {
        let made = server.cli(&["key", "new", ANN, "--scope", scope]).unwrap();
        Api::new(server.base_url(), made.trim())
    };
    let (reader, writer) = (key("read"), key("write"));
    let instance = running(&api);
    let taken = ready(&api, &instance, "before");
    take(&reader, &instance, "other").is(403);
    delete(&reader, &taken).is(403);
    assert_eq!(one(&reader, &taken).is(200), taken);
    one(&writer, &taken).is(403);
    let created = take(&writer, &instance, "other").is(201);
    let fields: Vec<_> = created.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["id", "state"]);
    delete(&writer, &created).is(204);
    server.finish().unwrap();
}

#[test]
fn conditions_and_pages_are_those_of_volumes() {
    let (server, api) = start();
    let (instance, other) = (running(&api), running(&api));
    let names: Vec<_> = (0..5).map(|n| format!("snapshot-{n}")).collect();
    for name in &names {
        ready(&api, &instance, name);
    }
    let of_other = ready(&api, &other, "snapshot-5");
    let walk = |first: &str| {
        let (mut found, mut path) = (Vec::new(), Some(first.to_owned()));
        while let Some(next) = path {
            let page = api.get(&next).unwrap();
            path = page.header("link").map(|link| {
                let end = link.find('>').unwrap();
                link[1..end].to_owned()
            });
            let page = page.is(200);
            let names = page.as_array().unwrap().iter();
            found.extend(names.map(|row| row["name"].as_str().unwrap().to_owned()));
        }
        found
    };
    let of = format!("/api/snapshot/?instance={}&limit=2", uuid(&instance));
    assert_eq!(walk(&of), names);
    assert_eq!(walk("/api/snapshot/?limit=2").len(), 6);
    let path = path(&of_other);
    let tag = one(&api, &of_other).header("etag").unwrap().to_owned();
    let known = api.raw_with("GET", &path, &[("If-None-Match", &tag)], None);
    assert_eq!(known.unwrap().status, 304);
    let stale = api.raw_with("DELETE", &path, &[("If-Match", "\"0\"")], None);
    stale.is(412);
    let right = api.raw_with("DELETE", &path, &[("If-Match", &tag)], None);
    right.is(204);
    server.finish().unwrap();
}

#[test]
fn quotas_limit_snapshots() {
    let quota = "[quota]\nn_snapshots = 2\nsnapshot_gib = 15\n";
    let (server, api) = start_on(quota, &simulated_node("one", "snapshot_ms = 60000"));
    let instance = running(&api);
    let limits = api.get("/api/quota/").is(200);
    assert_eq!(limits["n_snapshots"], json!({ "used": 0, "limit": 2 }));
    // Until it is ready, a snapshot holds the whole disk.
    let first = take(&api, &instance, "first").is(201);
    assert_eq!(used(&api, "snapshot_gib"), 10);
    let short = take(&api, &instance, "second").is(422)["detail"].clone();
    assert_eq!(short["bottleneck"], json!(["snapshot_gib"]));
    assert_eq!(short["nearest_available"], json!({ "snapshot_gib": 5 }));
    has(short["message"].as_str().unwrap(), "quota");
    let limit = ["user", "limit", ANN, "--snapshot-gib", "unlimited"];
    server.cli(&limit).unwrap();
    take(&api, &instance, "second").is(201);
    let short = take(&api, &instance, "third").is(422)["detail"].clone();
    assert_eq!(short["bottleneck"], json!(["n_snapshots"]));
    server
        .cli(&["user", "limit", ANN, "--snapshots", "3"])
        .unwrap();
    take(&api, &instance, "third").is(201);
    delete(&api, &first).is(204);
    server.finish().unwrap();
}

#[test]
fn a_snapshot_claims_the_disk_until_its_size_is_known() {
    let (server, api) = start_with("snapshot_ms = 1000");
    let instance = running(&api);
    let disk = |expected: &str| has(server.cli(&["node", "list"]).unwrap(), expected);
    disk(" 10/500");
    let taken = take(&api, &instance, "before").is(201);
    disk(" 20/500");
    until_state(&api, &taken, "ready");
    disk(" 11/500");
    // A node without the room for the whole disk takes none.
    let volume = json!({ "name": "large", "size_gib": 480 });
    api.send("POST", "/api/volume/", &volume).is(201);
    let short = take(&api, &instance, "second").is(422)["detail"].clone();
    assert_eq!(short["bottleneck"], json!(["disk_size_gib"]));
    assert_eq!(short["requested"], json!({ "disk_size_gib": 10 }));
    assert_eq!(short["nearest_available"], json!({ "disk_size_gib": 9 }));
    // Neither does a clone find room there.
    let short = clone(&api, &taken).is(422)["detail"].clone();
    assert_eq!(short["bottleneck"], json!(["disk_size_gib"]));
    server.finish().unwrap();
}

#[test]
fn an_instance_has_at_most_32_snapshots() {
    let (server, api) = start();
    let instance = running(&api);
    for n in 0..32 {
        take(&api, &instance, &format!("before-{n}")).is(201);
    }
    let refused = take(&api, &instance, "one-more").is(400);
    has(refused["detail"].as_str().unwrap(), "32");
    server.finish().unwrap();
}

#[test]
fn snapshots_go_with_their_instance() {
    for kind in ["shared", "copied"] {
        let (server, api) = start_with(&format!("snapshots = \"{kind}\", snapshot_ms = 100"));
        let instance = running(&api);
        let first = ready(&api, &instance, "first");
        let second = take(&api, &instance, "second").is(201);
        api.delete(uuid(&instance)).is(204);
        for gone in [&first, &second] {
            one(&api, gone).is(404);
        }
        assert_eq!(api.get("/api/usage/").is(200)["hourly_usd"], 0.0);
        until_event(&api, &instance, "purged");
        until_free(&api);
        assert_eq!(count(&api, &instance, "snapshot-deleted"), 2);
        server.finish().unwrap();
    }
}

/// Requests an instance with these fields from a snapshot of a disk of 12 GiB.
fn clone_with(api: &Api, snapshot: &Value, body: Value) -> wharf_tests::Answer {
    let mut all = json!({ "n_vcpus": 1, "mem_gib": 1, "disk_size_gib": 12 });
    let fields = body.as_object().unwrap().clone();
    all.as_object_mut().unwrap().extend(fields);
    let path = format!("{}clone/", path(snapshot));
    api.send("POST", &path, &all).unwrap()
}

#[test]
fn fsck_names_snapshots_that_contradict_their_instance() {
    let (mut server, api) = start();
    let instance = running(&api);
    ready(&api, &instance, "before");
    server.terminate().unwrap();
    edit(&server, |rows| {
        let key = [b"i", &bytes(uuid(&instance))[..], &[0]].concat();
        assert!(rows.remove(&*key).unwrap().is_some());
    });
    let found = server.cli(&["fsck"]).unwrap_err().to_string();
    has(found, "its instance does not exist");
}

#[test]
fn a_clone_has_the_flavor_and_what_the_request_says() {
    let (server, api) = start();
    let body = crate::with("container", json!({ "disk_size_gib": 12 }));
    let created = api.create(&body).is(201);
    let instance = api.wait_for(uuid(&created), "running").unwrap();
    let taken = ready(&api, &instance, "before");
    let small = clone(&api, &taken).is(400);
    has(small["disk_size_gib"][0].as_str().unwrap(), "at least 12");
    let made = clone_with(&api, &taken, json!({})).is(201);
    assert_eq!(made["flavor"], instance["flavor"]);
    assert_eq!(made["resource_type"], "container");
    for field in ["flavor", "resource_type"] {
        let refused = clone_with(&api, &taken, json!({ field: instance[field] })).is(400);
        assert!(refused[field].is_array(), "{refused}");
    }
    clone_with(
        &api,
        &taken,
        json!({ "name": "second-run", "disk_size_gib": 15 }),
    )
    .is(201);
    let named = clone_with(&api, &taken, json!({ "name": "second-run" })).is(400);
    assert_eq!(named["name"], json!(["is already taken"]));
    let deleted = ready(&api, &instance, "other");
    delete(&api, &deleted).is(204);
    clone(&api, &deleted).is(404);
    server.finish().unwrap();
}

#[test]
fn an_old_image_is_restored_and_not_cloned() {
    let (server, api) = start_with("snapshots_clonable = false");
    let instance = stopped(&api);
    let taken = ready(&api, &instance, "before");
    assert_eq!(taken["clonable"], false);
    has(
        clone(&api, &taken).is(400)["detail"].as_str().unwrap(),
        "not cloned",
    );
    restore(&api, &taken, false).is(200);
    until_event(&api, &instance, "restored");
    server.finish().unwrap();
}

#[test]
fn a_disk_that_is_restored_changes_in_no_other_way() {
    let (server, api) = start_with("restore_ms = 100000");
    let instance = stopped(&api);
    let taken = ready(&api, &instance, "before");
    restore(&api, &taken, false).is(200);
    let grown = format!("/api/instance/{}/", uuid(&instance));
    let refusals = [
        take(&api, &instance, "now").is(400),
        restore(&api, &taken, false).is(400),
        delete(&api, &taken).is(400),
        api.send("PATCH", &grown, &json!({ "n_vcpus": 2 })).is(400),
    ];
    for refused in refusals {
        has(refused["detail"].as_str().unwrap(), "restored");
    }
    api.delete(uuid(&instance)).is(204);
    server.finish().unwrap();
}

#[test]
fn a_plan_is_set_shown_and_ended() {
    let (server, api) = start();
    let instance = running(&api);
    let path = format!("/api/instance/{}/snapshot-plan/", uuid(&instance));
    api.get(&path).is(404);
    api.raw("DELETE", &path, None).is(404);
    let set = api.send("PUT", &path, &json!({ "every_h": 24, "keep": 7 }));
    let set = set.is(200);
    assert_eq!((&set["every_h"], &set["keep"]), (&json!(24), &json!(7)));
    assert_eq!(set["keep_days"], Value::Null);
    assert!(set["next_at"].as_str() > set["created_at"].as_str());
    let again = api.send("PUT", &path, &json!({ "every_h": 24, "keep": 7 }));
    assert_eq!(again.is(200)["created_at"], set["created_at"]);
    let other = json!({ "every_h": 1, "keep": 2, "keep_days": 3 });
    let other = api.send("PUT", &path, &other).is(200);
    assert_eq!(other["keep_days"], 3);
    assert_eq!(api.get(&path).is(200)["every_h"], 1);
    api.raw("DELETE", &path, None).is(204);
    api.get(&path).is(404);
    assert_eq!(count(&api, &instance, "snapshot-plan-set"), 2);
    assert_eq!(count(&api, &instance, "snapshot-plan-removed"), 1);
    let log = api.get("/api/audit/").is(200).to_string();
    has(&log, "instance.plan-snapshots");
    server.finish().unwrap();
}

#[test]
fn a_suspended_user_takes_no_snapshot_and_keeps_those_there_are() {
    let (server, api) = start();
    let instance = running(&api);
    let taken = ready(&api, &instance, "before");
    let suspend = ["suspend", "--user", ANN, "--reason", "unpaid"];
    server.cli(&suspend).unwrap();
    let refused = take(&api, &instance, "other").is(400);
    has(refused["detail"].as_str().unwrap(), "unpaid");
    has(
        clone(&api, &taken).is(400)["detail"].as_str().unwrap(),
        "unpaid",
    );
    wait_until("the snapshot is there", || {
        Ok((one(&api, &taken).is(200)["state"] == "ready").then_some(()))
    });
    delete(&api, &taken).is(204);
    server.finish().unwrap();
}

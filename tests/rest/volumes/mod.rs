//! Volumes: disks with names of their own, which outlive the instances that have them.

mod attach;
mod bill;
mod capacity;
mod claims;
mod failures;
mod shares;

use crate::{Expected, has, start, start_with, wait_until};
use serde_json::{Value, json};
use wharf_tests::{Answer, Api, Server};

const ANN: &str = "ann@example.com";

/// Requests a volume.
fn create(api: &Api, name: &str, size_gib: u32) -> Answer {
    let body = json!({ "name": name, "size_gib": size_gib });
    api.send("POST", "/api/volume/", &body).unwrap()
}

/// Creates a volume, and waits until it is ready.
fn ready(api: &Api, name: &str, size_gib: u32) -> Value {
    create(api, name, size_gib).is(201);
    until_state(api, name, "ready")
}

fn one(api: &Api, named: &str) -> Answer {
    api.get(&format!("/api/volume/{named}/")).unwrap()
}

fn until_state(api: &Api, named: &str, state: &str) -> Value {
    wait_until(&format!("{named} is {state}"), || {
        let volume = one(api, named).is(200);
        Ok((volume["state"] == state).then_some(volume))
    })
}

fn delete(api: &Api, named: &str) -> Answer {
    let path = format!("/api/volume/{named}/");
    api.raw("DELETE", &path, None).unwrap()
}

/// Deletes a volume as soon as no instance has it.
fn delete_at_last(api: &Api, named: &str) {
    wait_until("the volume can be deleted", || {
        Ok((delete(api, named).status == 204).then_some(()))
    });
}

fn rename(api: &Api, named: &str, body: &Value) -> Answer {
    api.send("PATCH", &format!("/api/volume/{named}/"), body)
        .unwrap()
}

fn id(volume: &Value) -> &str {
    volume["id"].as_str().unwrap()
}

/// The smallest container with these volumes.
fn with_volumes(volumes: Value) -> Value {
    crate::with("container", json!({ "volumes": volumes }))
}

/// Creates the smallest container with a volume at `/data`, and waits until it runs.
fn running_with(api: &Api, volume: &str, read_only: bool) -> Value {
    let mount = json!([{ "volume": volume, "path": "/data", "read_only": read_only }]);
    let created = api.create(&with_volumes(mount)).is(201);
    api.wait_for(crate::uuid(&created), "running").unwrap()
}

fn used(api: &Api, field: &str) -> u64 {
    let quota = api.get("/api/quota/").is(200);
    quota[field]["used"].as_u64().unwrap()
}

/// The types of events of a volume.
fn events(api: &Api, volume: &str) -> Vec<String> {
    let events = api.get("/api/event/?after=0&limit=1000").is(200);
    let events = events.as_array().unwrap().iter();
    let own = events.filter(|event| event["volume"] == volume);
    own.map(|event| event["type"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_volume_is_made_renamed_and_deleted() {
    let (server, api) = start();
    let created = create(&api, "genome", 20).is(201);
    assert_eq!(created["name"], "genome");
    assert_eq!(created["size_gib"], 20);
    assert_eq!(created["cpu_tier"], "general-purpose");
    assert_eq!(created["storage_cost_hourly_usd"], 0.00014);
    assert_eq!(created["owner_email"], ANN);
    assert_eq!(created["shared"], false);
    assert_eq!(created["attached_to"], json!([]));
    assert_eq!(created["reason"], Value::Null);
    let id = id(&created).to_owned();
    let ready = until_state(&api, "genome", "ready");
    assert_eq!(ready["id"], created["id"]);
    assert_eq!(one(&api, &id).is(200), ready);
    assert_eq!(one(&api, &id.to_uppercase()).is(200), ready);
    assert_eq!(api.get("/api/volume/").is(200), json!([ready]));
    assert_eq!((used(&api, "n_volumes"), used(&api, "volume_gib")), (1, 20));

    let renamed = rename(&api, "genome", &json!({ "name": "reference" })).is(200);
    assert_eq!(renamed["name"], "reference");
    assert_eq!(rename(&api, &id, &json!({})).is(200), renamed);
    one(&api, "genome").is(404);
    create(&api, "genome", 1).is(201);
    let taken = rename(&api, &id, &json!({ "name": "genome" })).is(400);
    assert_eq!(taken["name"], json!(["is already taken"]));

    delete(&api, "genome").is(204);
    delete(&api, &id).is(204);
    has(
        delete(&api, &id).is(404)["detail"].as_str().unwrap(),
        "Volume",
    );
    one(&api, "reference").is(404);
    assert_eq!(api.get("/api/volume/").is(200), json!([]));
    wait_until("the claims are free", || {
        Ok((used(&api, "n_volumes") == 0).then_some(()))
    });
    assert_eq!(used(&api, "volume_gib"), 0);
    let expected = ["created", "ready", "renamed", "deleted"].map(|kind| format!("volume-{kind}"));
    assert_eq!(events(&api, &id), expected);
    let log = api.get("/api/audit/").is(200).to_string();
    for operation in ["volume.create", "volume.update", "volume.delete"] {
        has(&log, operation);
    }
    server.finish().unwrap();
}

#[test]
fn events_of_volumes_have_the_volume_and_no_instance() {
    let (server, api) = start();
    let volume = ready(&api, "genome", 3);
    let events = api.get("/api/event/?after=0").is(200);
    let event = &events[0];
    assert_eq!(event["type"], "volume-created");
    assert_eq!(event["volume"], volume["id"]);
    assert_eq!(event["state"], "creating");
    assert_eq!(event["disk_size_gib"], 3);
    for none in ["instance", "n_vcpus", "mem_gib"] {
        assert_eq!(event[none], Value::Null, "{none}");
    }
    assert_eq!(event["actor"]["kind"], "key");
    assert_eq!(events[1]["state"], "ready");
    assert_eq!(events[1]["actor"]["kind"], "node");
    let of_operator = server.cli(&["events", id(&volume)]).unwrap();
    has(&of_operator, "volume-ready");
    server.finish().unwrap();
}

#[test]
fn wrong_fields_are_named_together() {
    let (server, api) = start();
    for (body, fields) in [
        (json!({}), &["name", "size_gib"][..]),
        (
            json!({ "name": "-x", "size_gib": 0 }),
            &["name", "size_gib"],
        ),
        (json!({ "name": "ok", "size_gib": 2001 }), &["size_gib"]),
        (json!({ "name": "ok", "size_gib": "1" }), &["size_gib"]),
        (
            json!({ "name": "ok", "size_gib": 1, "cpu_tier": "x" }),
            &["cpu_tier"],
        ),
        (
            json!({ "name": "ok", "size_gib": 1, "state": "ready" }),
            &["state"],
        ),
        (
            json!({ "name": "0f8fad5b-d9cb-469f-a165-70867728950e", "size_gib": 1 }),
            &["name"],
        ),
    ] {
        let refused = api.send("POST", "/api/volume/", &body).is(400);
        let named: Vec<_> = refused.as_object().unwrap().keys().collect();
        assert_eq!(named, fields, "{body}");
    }
    create(&api, "genome", 1).is(201);
    let taken = create(&api, "genome", 1).is(400);
    assert_eq!(taken["name"], json!(["is already taken"]));
    // Names are of one owner.
    let bob = server.user("bob@example.com").unwrap();
    create(&bob, "genome", 1).is(201);
    server.finish().unwrap();
}

#[test]
fn volumes_of_others_are_not_found() {
    let (server, api) = start();
    let volume = ready(&api, "genome", 1);
    let bob = server.user("bob@example.com").unwrap();
    for named in ["genome", id(&volume)] {
        one(&bob, named).is(404);
        delete(&bob, named).is(404);
        rename(&bob, named, &json!({ "name": "mine" })).is(404);
        rename(&bob, named, &json!({ "name": 7 })).is(404);
        let path = format!("/api/volume/{named}/share/");
        bob.get(&path).is(404);
        bob.send("POST", &path, &json!({ "user": ANN })).is(404);
    }
    assert_eq!(bob.get("/api/volume/").is(200), json!([]));
    server.finish().unwrap();
}

#[test]
fn a_retry_with_the_idempotency_key_creates_nothing_twice() {
    let (server, api) = start();
    let (body, other) = (
        json!({ "name": "genome", "size_gib": 1 }),
        json!({ "name": "other", "size_gib": 1 }),
    );
    let send = |body: &Value| {
        let headers = [("Idempotency-Key", "k1")];
        api.send_with("POST", "/api/volume/", &headers, body)
    };
    let first = send(&body).is(201);
    let again = send(&body).is(201);
    assert_eq!(first["id"], again["id"]);
    assert_eq!(again["state"], "creating");
    send(&other).is(422);
    delete(&api, "genome").is(204);
    assert_eq!(send(&body).is(201)["id"], first["id"]);
    assert_eq!(api.get("/api/volume/").is(200), json!([]));
    server.finish().unwrap();
}

#[test]
fn keys_see_and_change_volumes_by_their_scopes() {
    let (server, api) = start();
    let key = |scope: &str| {
        let made = server.cli(&["key", "new", ANN, "--scope", scope]).unwrap();
        Api::new(server.base_url(), made.trim())
    };
    let (reader, writer) = (key("read"), key("write"));
    ready(&api, "genome", 1);
    create(&reader, "other", 1).is(403);
    delete(&reader, "genome").is(403);
    assert_eq!(one(&reader, "genome").is(200)["name"], "genome");
    one(&writer, "genome").is(403);
    let created = create(&writer, "other", 1).is(201);
    let fields: Vec<_> = created.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["id", "state"]);
    delete(&writer, "other").is(204);
    let path = "/api/volume/genome/share/";
    let share = json!({ "user": "bob@example.com" });
    reader.send("POST", path, &share).is(403);
    let shared = writer.send("POST", path, &share).is(201);
    let fields: Vec<_> = shared.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["id"]);
    server.finish().unwrap();
}

#[test]
fn conditions_hold_for_volumes() {
    let (server, api) = start();
    ready(&api, "genome", 1);
    let path = "/api/volume/genome/";
    let tag = one(&api, "genome").header("etag").unwrap().to_owned();
    let with = |method: &str, header: &str, value: &str, body: &Value| {
        let headers = [(header, value)];
        api.send_with(method, path, &headers, body).unwrap()
    };
    let known = api.raw_with("GET", path, &[("If-None-Match", &tag)], None);
    assert_eq!(known.unwrap().status, 304);
    let name = json!({ "name": "reference" });
    with("PATCH", "If-Match", "\"0\"", &name).is(412);
    with("PATCH", "If-Match", &tag, &name).is(200);
    let stale = api.raw_with(
        "DELETE",
        "/api/volume/reference/",
        &[("If-Match", &tag)],
        None,
    );
    stale.is(412);
    let list = api.get("/api/volume/").unwrap();
    let tag = list.header("etag").unwrap().to_owned();
    let known = api.raw_with("GET", "/api/volume/", &[("If-None-Match", &tag)], None);
    assert_eq!(known.unwrap().status, 304);
    server.finish().unwrap();
}

#[test]
fn pages_have_every_volume_once() {
    let (server, api) = start();
    let names: Vec<_> = (0..5).map(|n| format!("volume-{n}")).collect();
    for name in &names {
        create(&api, name, 1).is(201);
    }
    let (mut found, mut path) = (Vec::new(), Some("/api/volume/?limit=2".to_owned()));
    while let Some(next) = path {
        let page = api.get(&next).unwrap();
        path = page.header("link").map(|link| {
            let end = link.find('>').unwrap();
            link[1..end].to_owned()
        });
        let page = page.is(200);
        let names = page.as_array().unwrap().iter();
        found.extend(names.map(|volume| volume["name"].as_str().unwrap().to_owned()));
    }
    assert_eq!(found, names);
    server.finish().unwrap();
}

#[test]
fn a_suspended_user_creates_no_volume_and_keeps_those_there_are() {
    let (server, api) = start_with("");
    ready(&api, "genome", 1);
    let suspend = ["suspend", "--user", ANN, "--reason", "unpaid"];
    server.cli(&suspend).unwrap();
    has(
        create(&api, "other", 1).is(400)["detail"].as_str().unwrap(),
        "unpaid",
    );
    let share = json!({ "user": "bob@example.com" });
    api.send("POST", "/api/volume/genome/share/", &share)
        .is(400);
    assert_eq!(one(&api, "genome").is(200)["state"], "ready");
    delete(&api, "genome").is(204);
    server.finish().unwrap();
}

/// Fails unless a server's log has no line of a failure.
fn no_failure(server: &Server) {
    let log = server.log();
    assert!(!log.contains("a volume cannot be made"), "{log}");
}

#[test]
fn a_failure_that_stays_is_logged_once() {
    let faults = "faults = [{ call = \"unmake\", error = \"error\" }]";
    let (server, api) = start_with(faults);
    ready(&api, "genome", 1);
    delete(&api, "genome").is(204);
    let logged = || {
        let log = server.log();
        log.matches("a step of a volume failed").count()
    };
    wait_until("the failure is logged", || Ok((logged() > 0).then_some(())));
    // Four more steps.
    wharf_tests::interval(std::time::Duration::from_secs(2));
    assert_eq!(logged(), 1);
    server.finish().unwrap();
}

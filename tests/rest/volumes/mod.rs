//! Volumes: disks with names of their own, which outlive the instances that have them.

mod attach;
mod bill;
mod capacity;
mod claims;
mod failures;
mod shares;

use crate::{Expected, has, made, start, start_with, until_true, until_used, used, wait_until};
use serde_json::{Value, json};
use wharf_tests::{Answer, Api, Server};

const ANN: &str = "ann@example.com";

/// Requests a volume.
fn create(api: &Api, name: &str, size_gib: u32) -> Answer {
    let body = json!({ "name": name, "size_gib": size_gib });
    api.send("POST", "/api/volume/", &body).unwrap()
}

/// Creates a volume, and waits until it is ready.
pub fn ready(api: &Api, name: &str, size_gib: u32) -> Value {
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
    until_true("the volume can be deleted", || {
        delete(api, named).status == 204
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
    made(api, &with_volumes(mount))
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
    rename(&api, "genome", &json!({ "name": "reference" })).is(200);
    delete(&api, "reference").is(204);
    until_used(&api, "n_volumes", 0);
    assert_eq!(used(&api, "volume_gib"), 0);
    let expected = ["created", "ready", "renamed", "deleted"].map(|kind| format!("volume-{kind}"));
    assert_eq!(self::events(&api, id(&volume)), expected);
    let log = api.get("/api/audit/").is(200).to_string();
    for operation in ["volume.create", "volume.update", "volume.delete"] {
        has(&log, operation);
    }
}

#[test]
fn a_suspended_user_creates_no_volume_and_keeps_those_there_are() {
    let (server, api) = start_with("");
    ready(&api, "genome", 1);
    let suspend = ["suspend", "--user", ANN, "--reason", "unpaid"];
    server.cli(&suspend).unwrap();
    has(&create(&api, "other", 1).is(400)["detail"], "unpaid");
    let share = json!({ "user": "bob@example.com" });
    api.send("POST", "/api/volume/genome/share/", &share)
        .is(400);
    assert_eq!(one(&api, "genome").is(200)["state"], "ready");
    delete(&api, "genome").is(204);
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
    until_true("the failure is logged", || logged() > 0);
    // Four more steps.
    wharf_tests::interval(std::time::Duration::from_secs(2));
    assert_eq!(logged(), 1);
}

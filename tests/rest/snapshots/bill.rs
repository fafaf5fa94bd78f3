//! The bill of snapshots: from `ready` to the deletion, by the GiB that they take.

use super::{delete, ready, take, until_event, until_state};
use crate::bill::total_of;
use crate::{Expected, has, made, millis, running, start_on, uuid};
use serde_json::{Value, json};
use wharf_tests::{Api, simulated_node};

const ANN: &str = "ann@example.com";

/// A GiB of storage costs a USD in each second, so that milliseconds show. Nothing else costs anything.
const RATES: &str = "[rates.general-purpose]\nvcpu = 0\nram = 0\nstorage = 1000\n";

/// The time of the last event of this type about a snapshot.
fn at(api: &Api, snapshot: &Value, kind: &str) -> i64 {
    let events = api.get("/api/event/?after=0&limit=1000").is(200);
    let mut events = events.as_array().unwrap().iter();
    let event = events.rfind(|event| event["type"] == kind && event["snapshot"] == snapshot["id"]);
    millis(&event.unwrap()["at"])
}

#[test]
fn the_bill_of_a_snapshot_begins_when_it_is_ready() {
    let (server, api) = start_on(RATES, &simulated_node("one", "snapshot_ms = 700"));
    let body = crate::with("container", json!({ "disk_size_gib": 45 }));
    let instance = made(&api, &body);
    let taken = take(&api, &instance, "before").is(201);
    let free = api.get("/api/usage/").is(200);
    assert_eq!(free["snapshots"], json!([]));
    assert_eq!(free["hourly_usd"], 45_000.0);
    let taken = until_state(&api, &taken, "ready");
    // A tenth of the disk, in whole GiB.
    assert_eq!(taken["size_gib"], 5);
    let small = super::clone(&api, &taken).is(400);
    has(&small["disk_size_gib"][0], "at least 45");
    let usage = api.get("/api/usage/").is(200);
    assert_eq!(usage["hourly_usd"], 50_000.0);
    let of_snapshot = &usage["snapshots"][0];
    assert_eq!(of_snapshot["id"], taken["id"]);
    assert_eq!(of_snapshot["instance"], instance["uuid"]);
    assert_eq!(of_snapshot["name"], "before");
    assert_eq!(of_snapshot["size_gib"], 5);
    assert_eq!(of_snapshot["state"], "ready");
    // Its instance ends it.
    api.delete(uuid(&instance)).is(204);
    let time = at(&api, &taken, "snapshot-deleted") - at(&api, &taken, "snapshot-ready");
    let usage = api.get("/api/usage/").is(200);
    assert_eq!(usage["hourly_usd"], 0.0);
    let of_snapshot = &usage["snapshots"][0];
    assert_eq!(of_snapshot["state"], "deleted");
    let expected = time as f64 * 5.0 * 1000.0 / 3_600_000.0;
    let billed = of_snapshot["total_usd"].as_f64().unwrap();
    // Events have the system's time, and the ledger has Wharf's own; both go on alike.
    assert!((billed - expected).abs() <= 0.0101, "{billed} {expected}");
    until_event(&api, &instance, "purged");
    super::until_free(&api);
    let purged = api.get("/api/usage/").is(200);
    assert_eq!(purged["snapshots"], usage["snapshots"]);
    let bill = server.cli(&["bill", ANN]).unwrap();
    has(&bill, "snapshot of 5 GiB");
    has(&bill, taken["id"].as_str().unwrap());
    let total = usage["total_usd"].as_f64().unwrap();
    assert!((total_of(&bill) - total).abs() < 1e-6, "{bill}");
}

#[test]
fn a_snapshot_that_was_not_taken_is_free() {
    let node = simulated_node("one", "refuse_snapshots = \"the disk is full\"");
    let (_server, api) = start_on(RATES, &node);
    let instance = running(&api);
    let taken = take(&api, &instance, "before").is(201);
    let failed = until_state(&api, &taken, "error");
    has(&failed["reason"], "could not take");
    assert_eq!(failed["size_gib"], Value::Null);
    let usage = api.get("/api/usage/").is(200);
    assert_eq!(usage["snapshots"], json!([]));
    delete(&api, &failed).is(204);
    super::until_free(&api);
}

#[test]
fn corrections_of_snapshots_are_shown() {
    let (server, api) = start_on("", &simulated_node("one", ""));
    let instance = running(&api);
    let taken = ready(&api, &instance, "before");
    let id = taken["id"].as_str().unwrap();
    let correct = ["bill", "correct", id, "-0.25", "--reason", "an outage"];
    server.cli(&correct).unwrap();
    let of_snapshot = &api.get("/api/usage/").is(200)["snapshots"][0];
    assert_eq!(of_snapshot["corrections"][0]["usd"], -0.25, "{of_snapshot}");
    delete(&api, &taken).is(204);
    server.cli(&correct).unwrap();
    let event = until_event(&api, &instance, "bill-corrected");
    assert_eq!(event["snapshot"], taken["id"]);
    assert_eq!(event["state"], "deleting");
}

//! The bill of volumes: from the 201 to the deletion, by size.

use super::{ANN, create, delete, id, ready, rename};
use crate::bill::{fake_clock, total_of};
use crate::{Expected, has, start, start_on};
use serde_json::Value;
use wharf_tests::simulated_node;

/// Milliseconds of a time in ISO 8601 within one day.
pub fn millis(time: &Value) -> u64 {
    let time = time.as_str().unwrap();
    let part = |from: usize, to: usize| time[from..to].parse::<u64>().unwrap();
    ((part(11, 13) * 60 + part(14, 16)) * 60 + part(17, 19)) * 1000 + part(20, 23)
}

#[test]
fn the_bill_of_a_volume_is_exact() {
    // A GiB costs a USD in each second, so that milliseconds show.
    let rates = "[rates.general-purpose]\nstorage = 1000\n";
    let (server, api) = start_on(rates, &simulated_node("one", ""));
    let made = ready(&api, "data", 9);
    assert_eq!(made["storage_cost_hourly_usd"], 1000.0);
    rename(&api, "data", &serde_json::json!({ "name": "results" })).is(200);
    let usage = api.get("/api/usage/").is(200);
    assert_eq!(usage["hourly_usd"], 9000.0);
    assert_eq!(usage["instances"], serde_json::json!([]));
    let of_volume = &usage["volumes"][0];
    assert_eq!(of_volume["id"], made["id"]);
    assert_eq!(of_volume["name"], "results");
    assert_eq!(of_volume["size_gib"], 9);
    assert_eq!(of_volume["state"], "ready");
    delete(&api, "results").is(204);
    let events = api.get("/api/event/?after=0").is(200);
    let at = |kind: &str| {
        let mut events = events.as_array().unwrap().iter();
        let event = events.rfind(|event| event["type"] == kind);
        millis(&event.unwrap()["at"])
    };
    let time = at("volume-deleted") - at("volume-created");
    let usage = api.get("/api/usage/").is(200);
    assert_eq!(usage["hourly_usd"], 0.0);
    let of_volume = &usage["volumes"][0];
    assert_eq!(of_volume["state"], "deleted");
    let expected = time as f64 * 9.0 * 1000.0 / 3_600_000.0;
    let billed = of_volume["total_usd"].as_f64().unwrap();
    // Events have the system's time, and the ledger has Wharf's own; both go on alike.
    assert!((billed - expected).abs() <= 0.0101, "{billed} {expected}");
    assert_eq!(usage["total_usd"], of_volume["total_usd"]);
    let bill = server.cli(&["bill", ANN]).unwrap();
    has(&bill, "volume of 9 GiB");
    has(&bill, id(&made));
    assert!((total_of(&bill) - billed).abs() < 1e-9, "{bill}");
    server.finish().unwrap();
}

#[test]
fn hours_and_corrections_are_on_the_bill() {
    let Some(clock) = fake_clock() else { return };
    let server = clock.server("").unwrap();
    let api = server.user(ANN).unwrap();
    let made = create(&api, "data", 100).is(201);
    clock.set("+7200").unwrap();
    server.cli(&["clock", "adopt"]).unwrap();
    let total = |server: &wharf_tests::Server| total_of(&server.cli(&["bill", ANN]).unwrap());
    let billed = total(&server);
    let hour = 100.0 * 0.00014;
    assert!(billed >= 2.0 * hour && billed < 2.1 * hour, "{billed}");
    for _ in 0..2 {
        let correct = [
            "bill",
            "correct",
            id(&made),
            "-0.01",
            "--reason",
            "an outage",
        ];
        server.cli(&correct).unwrap();
    }
    assert!((total(&server) - (billed - 0.02)).abs() < 0.001);
    delete(&api, "data").is(204);
    let after = total(&server);
    server
        .cli(&["bill", "correct", id(&made), "0.02", "--reason", "undone"])
        .unwrap();
    assert!((total(&server) - (after + 0.02)).abs() < 1e-9);
    server.finish().unwrap();
}

#[test]
fn corrections_of_volumes_are_shown() {
    let (server, api) = start();
    let made = ready(&api, "data", 7);
    let correct = |amount: &str| {
        let reason = ["--reason", "an outage"];
        let words = ["bill", "correct", id(&made), amount];
        server.cli(&[&words[..], &reason].concat()).unwrap();
    };
    correct("-0.25");
    let of_volume = &api.get("/api/usage/").is(200)["volumes"][0];
    let correction = &of_volume["corrections"][0];
    assert_eq!(correction["usd"], -0.25, "{of_volume}");
    assert_eq!(correction["reason"], "an outage");
    let last = |api: &wharf_tests::Api| {
        let events = api.get("/api/event/?after=0").is(200);
        events.as_array().unwrap().last().unwrap().clone()
    };
    let event = last(&api);
    assert_eq!(event["type"], "bill-corrected");
    assert_eq!(event["volume"], made["id"]);
    assert_eq!(event["state"], "ready");
    assert_eq!(event["actor"]["kind"], "operator");
    has(
        event["message"].as_str().unwrap(),
        "-0.250000000 USD: an outage",
    );
    let of_operator = server.cli(&["events", id(&made)]).unwrap();
    has(&of_operator, "\tready\tvolume of 7 GiB\t");
    assert!(!of_operator.contains("vCPU"), "{of_operator}");
    assert!(!of_operator.contains("exited"), "{of_operator}");
    // The correction of a deleted volume.
    delete(&api, "data").is(204);
    correct("0.5");
    let event = last(&api);
    assert_eq!(
        (&event["type"], &event["state"]),
        (&"bill-corrected".into(), &"deleting".into())
    );
    server.finish().unwrap();
}

#[test]
fn the_offer_has_the_rate_of_volumes() {
    let (server, api) = start();
    let offer = api.get("/api/offer/").is(200);
    let made = create(&api, "data", 1).is(201);
    assert_eq!(
        offer["cpu_tiers"][0]["storage_cost_hourly_usd"],
        made["storage_cost_hourly_usd"]
    );
    server.finish().unwrap();
}

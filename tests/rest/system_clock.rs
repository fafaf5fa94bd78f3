//! The system's clock is set right. People and other machines get the system's time at once, and bills
//! follow Wharf's own.

use crate::bill::fake_clock;
use crate::webhooks::{LOOPBACK, Receiver, create as new_webhook};
use crate::{Expected, millis, time, until_true, uuid, wait_until};
use serde_json::json;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use wharf_tests::Api;

const HOUR: i64 = 3600;

fn seconds() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    now.as_secs().try_into().unwrap()
}

/// The seconds from a time to the present.
#[track_caller]
fn age(time: &serde_json::Value) -> i64 {
    seconds() - millis(time) / 1000
}

/// Fails unless a time is the present one, up to the duration of a slow test.
#[track_caller]
fn is_now(what: &str, time: &serde_json::Value) {
    let age = age(time);
    assert!(age.abs() < HOUR / 4, "{what} is {age} s old: {time}");
}

#[test]
fn a_clock_that_is_set_right_is_followed_at_once_except_by_bills() {
    let Some(clock) = fake_clock() else { return };
    for wrong in ["-1h", "+1h"] {
        clock.set(wrong).unwrap();
        let mut server = clock.server(LOOPBACK).unwrap();
        let ann = server.user("ann@example.com").unwrap();
        let before = ann.small_container().unwrap();
        assert!(age(&before["created_at"]).abs() > HOUR / 2);
        clock.set("+0").unwrap();
        let receiver = Receiver::start();
        let (hook, _) = new_webhook(&ann, &receiver, &["created"]);
        let created = ann.small_container().unwrap();
        is_now("created_at", &created["created_at"]);
        is_now("the webhook", &ann.get(&hook).is(200)["created_at"]);
        let request = receiver.wait(1).remove(0);
        let signed: i64 = request.headers["webhook-timestamp"].parse().unwrap();
        assert!(
            (seconds() - signed).abs() < 300,
            "receivers refuse {signed}"
        );
        is_now("the event of the webhook", &request.json()["timestamp"]);
        let path = format!("/api/event/?instance={}", uuid(&created));
        is_now("the event", &ann.get(&path).is(200)[0]["at"]);
        let delivered = wait_until("the delivery is noted", || {
            let deliveries = ann.get(&format!("{hook}delivery/"))?.is(200);
            let first = deliveries[0].clone();
            Ok((first["state"] == "delivered").then_some(first))
        });
        is_now("the delivery", &delivered["at"]);
        let audit = ann.get("/api/audit/?order=newest&limit=1").is(200);
        is_now("the audit record", &audit[0]["time"]);
        // A key that is about to expire, by the right clock.
        let key = |after: &str| {
            let body = json!({ "expires_at": time(after) });
            ann.send("POST", "/api/key/", &body)
        };
        key("60 seconds ago").is(400);
        let short = key("2 seconds").is(201);
        is_now("the key", &short["created_at"]);
        let short = Api::new(server.base_url(), short["key"].as_str().unwrap());
        until_true("the key expires", || {
            short.get("/api/instance/").unwrap().status == 401
        });
        // The bill has no hour that has not passed, nor loses one.
        let bill = server.cli(&["bill", "ann@example.com"]).unwrap();
        let total = ann.get("/api/usage/").is(200)["total_usd"]
            .as_f64()
            .unwrap();
        let hourly: f64 = ["vcpu", "ram", "storage", "gpu"]
            .map(|part| created[format!("{part}_cost_hourly_usd")].as_f64().unwrap())
            .iter()
            .sum();
        assert!(
            (0.0..hourly / 4.0).contains(&total),
            "{total} of {hourly}: {bill}"
        );
        // The next process goes on alike.
        server.terminate().unwrap();
        server.run().unwrap();
        let ann = server.again(&ann);
        let next = ann.small_container().unwrap();
        is_now("created_at after a start", &next["created_at"]);
        ann.delete(uuid(&next)).is(204);
        std::thread::sleep(Duration::from_millis(10));
    }
}

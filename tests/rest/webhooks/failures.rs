//! Receivers that fail, and users that are disabled.

use super::{
    LOOPBACK, Receiver, create, deliveries, events, get, ids, post, start, until_delivery,
};
use crate::bill::fake_clock;
use crate::{free_port, millis, running, uuid};
use serde_json::Value;

/// Milliseconds between two times of a delivery.
fn pause(delivery: &Value) -> i64 {
    millis(&delivery["next_attempt_at"]) - millis(&delivery["at"])
}

#[test]
fn a_failure_is_repeated_with_growing_pauses_until_the_receiver_answers_with_a_success() {
    let (_server, ann) = start();
    let receiver = Receiver::gated();
    let (webhook, secret) = create(&ann, &receiver, &["created"]);
    ann.small_container().unwrap();
    for attempt in 1..=2 {
        receiver.wait(attempt);
        receiver.answer("500 Failure");
        // The next attempt waits at the gate meanwhile.
        let failed = until_delivery(&ann, &webhook, |last| last["attempt"] == attempt);
        assert_eq!(failed["state"], "pending");
        assert_eq!(failed["status"], 500);
        assert_eq!(
            failed["error"],
            "the receiver did not answer with a success"
        );
        let least = 2000 << (attempt - 1);
        let pause = pause(&failed);
        assert!((least..=least * 5 / 4).contains(&pause), "{failed}");
    }
    let requests = receiver.wait(3);
    receiver.answer("200 OK");
    let done = until_delivery(&ann, &webhook, |last| last["state"] == "delivered");
    assert_eq!(done["attempt"], 3);
    assert_eq!(done["error"], Value::Null);
    for request in &requests {
        assert_eq!(
            (request.id(), &request.body),
            (requests[0].id(), &requests[0].body)
        );
        assert!(request.is_signed_by(&secret));
    }
    assert_eq!(receiver.requests().len(), 3);
}

#[test]
fn a_receiver_that_is_gone_disables_its_webhook_and_a_test_enables_it_with_all_events() {
    let (_server, ann) = start();
    let receiver = Receiver::gated();
    let (webhook, _) = create(&ann, &receiver, &["created"]);
    ann.small_container().unwrap();
    receiver.wait(1);
    receiver.answer("410 Gone");
    let given_up = until_delivery(&ann, &webhook, |last| last["state"] == "failed");
    assert_eq!(given_up["next_attempt_at"], Value::Null);
    assert!(get(&ann, &webhook)["disabled_at"].is_string());
    ann.small_container().unwrap();
    // A test that fails changes nothing.
    post(&ann, &format!("{webhook}test/"), 202);
    receiver.wait(2);
    receiver.answer("500 Failure");
    until_delivery(&ann, &webhook, |last| last["state"] == "failed");
    assert!(get(&ann, &webhook)["disabled_at"].is_string());
    post(&ann, &format!("{webhook}test/"), 202);
    receiver.wait(3);
    receiver.answer("200 OK");
    // The event of the meantime follows, and the one that was given up on request.
    let requests = receiver.wait(4);
    assert!(get(&ann, &webhook)["disabled_at"].is_null());
    let created: Vec<_> = { events(&ann).into_iter() }
        .filter(|e| e["type"] == "created")
        .collect();
    assert_eq!(requests[3].event(), created[1]);
    receiver.answer("200 OK");
    post(&ann, &format!("{webhook}delivery/1/redeliver/"), 202);
    assert_eq!(receiver.wait(5)[4].event(), created[0]);
    receiver.answer("200 OK");
    until_delivery(&ann, &webhook, |_| {
        let made = deliveries(&ann, &webhook);
        made.len() == 4 && made[3]["state"] == "delivered"
    });
}

#[test]
fn a_delivery_is_given_up_after_three_days_and_a_webhook_is_disabled_after_five() {
    let Some(clock) = fake_clock() else { return };
    clock.set("-20d").unwrap();
    let server = clock.server(LOOPBACK).unwrap();
    let ann = server.user("ann@example.com").unwrap();
    let to = |offset: &str| {
        clock.set(offset).unwrap();
        server.cli(&["clock", "adopt"]).unwrap();
    };
    let receiver = Receiver::with("500 Failure", None);
    let (webhook, _) = create(&ann, &receiver, &["created"]);
    ann.small_container().unwrap();
    until_delivery(&ann, &webhook, |last| last["attempt"] != 0);
    to("-16d");
    until_delivery(&ann, &webhook, |last| last["state"] == "failed");
    assert!(get(&ann, &webhook)["disabled_at"].is_null());
    ann.small_container().unwrap();
    until_delivery(&ann, &webhook, |last| {
        last["id"] == 2 && last["attempt"] != 0
    });
    to("-14d");
    until_delivery(&ann, &webhook, |last| last["state"] == "failed");
    assert!(get(&ann, &webhook)["disabled_at"].is_string());
    assert!(server.log().contains("a webhook was disabled"));
    let before = receiver.requests().len();
    ann.small_container().unwrap();
    // Another webhook gets it, and the disabled one does not.
    let other = Receiver::start();
    create(&ann, &other, &[]);
    ann.small_container().unwrap();
    other.wait(1);
    assert_eq!(receiver.requests().len(), before);
}

#[test]
fn a_failure_has_its_reason_and_its_pause() {
    let (_server, ann) = start();
    let failed = |receiver: &Receiver| {
        let (webhook, _) = create(&ann, receiver, &[]);
        post(&ann, &format!("{webhook}test/"), 202);
        let failed = until_delivery(&ann, &webhook, |last| last["attempt"] == 1);
        assert_eq!(failed["state"], "pending");
        failed
    };
    let mut absent = Receiver::start();
    absent.url = format!("http://127.0.0.1:{}/hook", free_port());
    let of_absent = failed(&absent);
    assert_eq!(of_absent["error"], "no connection to the receiver");
    assert!(of_absent["status"].is_null());

    let target = Receiver::start();
    let redirect = format!("307 Elsewhere\r\nLocation: {}", target.url);
    let redirected = failed(&Receiver::with(&redirect, None));
    assert_eq!(redirected["status"], 307);
    assert_eq!(redirected["error"], "redirects are not followed");
    assert!(target.requests().is_empty());

    // A receiver says when the next attempt is welcome.
    let slowed = failed(&Receiver::with("429 Slow\r\nRetry-After: 600", None));
    assert_eq!(slowed["status"], 429);
    let pause = pause(&slowed);
    assert!((600_000..=750_000).contains(&pause), "{slowed}");
}

#[test]
fn a_disabled_user_gets_nothing_until_the_operator_enables_the_user() {
    let (server, ann) = start();
    let receiver = Receiver::start();
    create(&ann, &receiver, &[]);
    let created = running(&ann);
    let before = receiver.wait_for(&ids(&events(&ann))).len();
    server.cli(&["user", "disable", "ann@example.com"]).unwrap();
    server
        .cli(&["suspend", uuid(&created), "--reason", "a test"])
        .unwrap();
    // Another user's deliveries go on, so a delivery to the disabled one would have been made.
    let bob = server.user("bob@example.com").unwrap();
    let other = Receiver::start();
    create(&bob, &other, &[]);
    bob.small_container().unwrap();
    other.wait(2);
    assert_eq!(receiver.requests().len(), before);
    server.cli(&["user", "enable", "ann@example.com"]).unwrap();
    let all = events(&ann);
    assert!(all.len() > before);
    receiver.wait_for(&ids(&all));
}

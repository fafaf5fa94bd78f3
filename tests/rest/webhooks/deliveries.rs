//! Deliveries: content, signatures, types, tests, repetition, rotation.

use super::{
    Delivered, Receiver, create, deliveries, events, get, ids, post, start, until_delivery,
};
use crate::fsck::{edit, flip_bit};
use crate::{Expected, running, uuid, wait_until};
use redb::ReadableTable;
use serde_json::{Value, json};
use std::collections::BTreeSet;

#[test]
fn every_event_is_delivered_with_a_signature() {
    let (mut server, ann) = start();
    let bob = server.user("bob@example.com").unwrap();
    running(&ann);
    let before = events(&ann).len();
    let receiver = Receiver::start();
    let (webhook, secret) = create(&ann, &receiver, &[]);
    bob.small_container().unwrap();
    let created = running(&ann);
    ann.delete(uuid(&created)).is(204);
    let expected = wait_until("the instance is purged", || {
        let events = events(&ann);
        Ok(events
            .iter()
            .any(|e| e["type"] == "purged")
            .then_some(events))
    });
    let expected = &expected[before..];
    let requests = receiver.wait_for(&ids(expected));
    assert_eq!(requests.len(), expected.len());
    for (request, event) in requests.iter().zip(expected) {
        let body = json!({ "type": event["type"], "timestamp": event["at"], "data": event });
        assert_eq!(request.json(), body);
        assert_eq!(request.headers["content-type"], "application/json");
        assert!(request.headers["user-agent"].starts_with("wharf/"));
        assert!(request.is_signed_by(&secret), "{request:?}");
        assert!(!request.is_signed_by(&json!("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")));
    }
    until_delivery(&ann, &webhook, |last| last["state"] == "delivered");
    let made = deliveries(&ann, &webhook);
    assert_eq!(made.len(), expected.len());
    for (delivery, event) in made.iter().rev().zip(expected) {
        assert_eq!(delivery["event"], event["id"]);
        assert_eq!(delivery["attempt"], 1);
        assert_eq!(delivery["status"], 204);
        assert_eq!(delivery["next_attempt_at"], Value::Null);
    }

    // A restart repeats nothing.
    server.terminate().unwrap();
    server.run().unwrap();
    let ann = server.again(&ann);
    post(&ann, &format!("{webhook}test/"), 202);
    wait_until("the test is delivered", || {
        let made = deliveries(&ann, &webhook);
        let done = |made: &&Value| made["event"].is_null() && made["state"] == "delivered";
        Ok(made.iter().find(done).map(drop))
    });
    let requests = receiver.requests();
    let distinct: BTreeSet<_> = requests.iter().map(Delivered::id).collect();
    assert_eq!(distinct.len(), requests.len());
    let test = requests
        .iter()
        .find(|r| r.json()["type"] == "test")
        .unwrap();
    assert_eq!(test.json()["type"], "test");
    assert_eq!(test.event()["id"], 0);
    assert!(test.is_signed_by(&secret));

    // The secret is in no other answer, and in no log.
    let shown = get(&ann, "/api/webhook/");
    assert_eq!(shown, json!([get(&ann, &webhook)]));
    let secret = secret.as_str().unwrap();
    let audit = get(&ann, "/api/audit/").to_string();
    assert!(
        audit.contains("webhook.new") && audit.contains("webhook.test"),
        "{audit}"
    );
    for text in [shown.to_string(), audit, server.log()] {
        assert!(!text.contains(secret));
    }
}

#[test]
fn a_webhook_gets_the_types_that_it_asks_for_until_it_is_deleted() {
    let (_server, ann) = start();
    let (all, some) = (Receiver::start(), Receiver::start());
    let (all_path, _) = create(&ann, &all, &[]);
    create(&ann, &some, &["ready", "stopped"]);
    let created = running(&ann);
    ann.act(uuid(&created), "stop").is(200);
    let wanted = |kind: &Value| kind == "ready" || kind == "stopped";
    let (chosen, others): (Vec<_>, Vec<_>) =
        events(&ann).into_iter().partition(|e| wanted(&e["type"]));
    assert!(chosen.len() == 2 && !others.is_empty());
    let requests = some.wait_for(&ids(&chosen));
    assert!(
        requests.iter().all(|r| wanted(&r.json()["type"])),
        "{requests:?}"
    );
    all.wait_for(&ids(&others));

    ann.send("DELETE", &all_path, &Value::Null).is(204);
    assert_eq!(ann.get(&all_path).unwrap().status, 404);
    let before = all.requests().len();
    ann.act(uuid(&created), "restart").is(200);
    some.wait(3);
    assert_eq!(all.requests().len(), before);
}

#[test]
fn a_delivery_is_repeated_on_request() {
    let (_server, ann) = start();
    let receiver = Receiver::start();
    let (webhook, _) = create(&ann, &receiver, &["created"]);
    ann.small_container().unwrap();
    until_delivery(&ann, &webhook, |last| last["state"] == "delivered");
    let again = post(&ann, &format!("{webhook}delivery/1/redeliver/"), 202);
    assert_eq!(again["id"], 1);
    assert_eq!(again["state"], "pending");
    let requests = receiver.wait(2);
    assert_eq!(requests[0].id(), requests[1].id());
    assert_eq!(requests[0].body, requests[1].body);
    until_delivery(&ann, &webhook, |last| last["state"] == "delivered");
    assert_eq!(deliveries(&ann, &webhook).len(), 1);
    for missing in ["2", "0", "x", "99999999999999999999999"] {
        post(
            &ann,
            &format!("{webhook}delivery/{missing}/redeliver/"),
            404,
        );
    }
}

#[test]
fn a_check_of_the_database_finds_a_secret_that_cannot_be_decrypted() {
    let (mut server, ann) = start();
    let receiver = Receiver::start();
    let (webhook, _) = create(&ann, &receiver, &[]);
    server.terminate().unwrap();
    assert!(server.cli(&["fsck"]).is_ok());
    edit(&server, |rows| {
        let (key, mut row) = {
            let mut found = rows.range(&b"w"[..]..&b"x"[..]).unwrap();
            let (key, row) = found.next().unwrap().unwrap();
            (key.value().to_vec(), row.value().to_vec())
        };
        flip_bit(&mut row);
        rows.insert(&*key, &*row).unwrap();
    });
    let report = server.cli(&["fsck"]).unwrap_err().to_string();
    let id = webhook.split('/').nth(3).unwrap();
    let line = format!("webhook {id}: ");
    assert!(
        report.contains(&line) && report.contains("does not decrypt its secret"),
        "{report}"
    );
    // Events wait, and the webhook can be deleted.
    server.run().unwrap();
    let ann = server.again(&ann);
    ann.send("DELETE", &webhook, &Value::Null).is(204);
}

#[test]
fn both_secrets_sign_after_a_rotation_and_a_new_key_of_the_service_changes_nothing() {
    let (server, ann) = start();
    let receiver = Receiver::start();
    let (webhook, first) = create(&ann, &receiver, &[]);
    let rotated = post(&ann, &format!("{webhook}rotate/"), 200);
    let second = rotated["secret"].clone();
    assert_ne!(first, second);
    for key in ["earlier", "rotated"] {
        if key == "rotated" {
            server.cli(&["secrets", "rotate"]).unwrap();
        }
        let before = receiver.requests().len();
        post(&ann, &format!("{webhook}test/"), 202);
        let request = receiver.wait(before + 1).pop().unwrap();
        assert!(request.is_signed_by(&first) && request.is_signed_by(&second));
        assert_eq!(request.headers["webhook-signature"].split(' ').count(), 2);
    }
    // Only the last two sign.
    let third = post(&ann, &format!("{webhook}rotate/"), 200)["secret"].clone();
    post(&ann, &format!("{webhook}test/"), 202);
    let request = receiver.wait(3).pop().unwrap();
    assert!(request.is_signed_by(&third) && request.is_signed_by(&second));
    assert!(!request.is_signed_by(&first));
}

#[test]
fn webhooks_are_served_beside_rows_of_other_users_that_cannot_be_read() {
    let (mut server, ann) = start();
    let bob = server.user("bob@example.com").unwrap();
    let receiver = Receiver::start();
    create(&bob, &receiver, &[]);
    let (earlier, _) = create(&ann, &receiver, &[]);
    server.terminate().unwrap();
    edit(&server, |rows| {
        let key = {
            // Ann is the first user, and Bob the second.
            let mut found = rows.range(&b"w"[..]..&b"x"[..]).unwrap();
            let (key, _) = found.next_back().unwrap().unwrap();
            key.value().to_vec()
        };
        rows.insert(&*key, &b""[..]).unwrap();
    });
    server.run().unwrap();
    let (ann, bob) = (server.again(&ann), server.again(&bob));
    bob.get("/api/webhook/").is(500);
    let (new, _) = create(&ann, &receiver, &[]);
    for webhook in [&earlier, &new] {
        post(&ann, &format!("{webhook}test/"), 202);
        until_delivery(&ann, webhook, |last| last["state"] == "delivered");
    }
    server.terminate().unwrap();
    assert!(server.cli(&["fsck"]).is_err());
}

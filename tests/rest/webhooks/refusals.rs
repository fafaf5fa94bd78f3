//! URLs that are refused, and addresses that no request reaches.

use super::{LOOPBACK, Receiver, create, post, start, start_with, until_delivery};
use crate::reload::edit;
use serde_json::{Value, json};

#[test]
fn addresses_that_are_not_public_are_refused_with_their_field() {
    let (server, ann) = start_with("");
    for (url, why) in [
        ("http://example.com/", "must begin with https://"),
        ("ftp://example.com/", "must begin with https://"),
        ("example.com", "must be a URL"),
        ("https://ann:secret@example.com/", "no password"),
        ("https://example.com/#top", "fragment"),
        ("https://127.0.0.1/", "public address"),
        ("https://0x7f000001/", "public address"),
        ("https://10.0.0.1:8443/", "public address"),
        ("https://100.100.100.200/", "public address"),
        ("https://168.63.129.16/", "public address"),
        (
            "https://169.254.169.254/latest/meta-data/",
            "public address",
        ),
        ("https://[::1]/", "public address"),
        ("https://[::ffff:10.0.0.1]/", "public address"),
        ("https://[64:ff9b::a00:1]/", "public address"),
        ("https://[2002:a00:1::]/", "public address"),
        ("https://[fd00:ec2::254]/", "public address"),
    ] {
        let refused = ann.send("POST", "/api/webhook/", &json!({ "url": url }));
        let refused = refused.unwrap().expect(400).unwrap();
        assert!(
            refused["url"][0].as_str().unwrap().contains(why),
            "{url}: {refused}"
        );
    }
    let body = json!({ "url": "https://127.0.0.1/", "types": ["ready", "no-such-type"] });
    let refused = ann.send("POST", "/api/webhook/", &body).unwrap();
    let refused = refused.expect(400).unwrap();
    assert!(refused["url"].is_array(), "{refused}");
    assert!(
        refused["types"][0]
            .as_str()
            .unwrap()
            .contains("no-such-type"),
        "{refused}"
    );
    assert_eq!(
        ann.get("/api/webhook/").unwrap().expect(200).unwrap(),
        json!([])
    );
    server.finish().unwrap();
}

#[test]
fn a_name_of_an_address_that_is_not_public_gets_no_request() {
    let (server, ann) = start_with("[webhook]\nhttp = true\n");
    let mut receiver = Receiver::start();
    receiver.url = receiver.url.replace("127.0.0.1", "localhost");
    let (webhook, _) = create(&ann, &receiver, &[]);
    post(&ann, &format!("{webhook}test/"), 202);
    let failed = until_delivery(&ann, &webhook, |last| last["attempt"] == 1);
    assert_eq!(failed["error"], "the host has no public address");
    assert!(receiver.requests().is_empty());
    // The operator allows the network, without a restart.
    edit(&server, "[webhook]\nhttp = true\n", LOOPBACK);
    server.hang_up().unwrap();
    until_delivery(&ann, &webhook, |last| last["state"] == "delivered");
    server.finish().unwrap();
}

#[test]
fn redirects_are_not_followed() {
    let (server, ann) = start();
    let target = Receiver::start();
    let redirect = format!("307 Elsewhere\r\nLocation: {}", target.url);
    let receiver = Receiver::with(&redirect, None);
    let (webhook, _) = create(&ann, &receiver, &[]);
    post(&ann, &format!("{webhook}test/"), 202);
    let failed = until_delivery(&ann, &webhook, |last| last["attempt"] == 1);
    assert_eq!(
        (&failed["status"], &failed["error"]),
        (&json!(307), &json!("redirects are not followed"))
    );
    assert!(target.requests().is_empty());
    server.finish().unwrap();
}

#[test]
fn webhooks_are_their_users_alone_and_at_most_twenty() {
    let (server, ann) = start();
    let bob = server.user("bob@example.com").unwrap();
    let receiver = Receiver::start();
    let (webhook, _) = create(&ann, &receiver, &[]);
    for path in [
        webhook.as_str(),
        "/api/webhook/x/",
        "/api/webhook/00000000-0000-4000-8000-000000000000/",
    ] {
        let delivery = format!("{path}delivery/");
        assert_eq!(bob.get(path).unwrap().status, 404);
        assert_eq!(bob.get(&delivery).unwrap().status, 404);
        assert_eq!(bob.send("DELETE", path, &Value::Null).unwrap().status, 404);
        for act in ["test/", "rotate/", "delivery/1/redeliver/"] {
            post(&bob, &format!("{path}{act}"), 404);
        }
    }
    for _ in 1..20 {
        create(&ann, &receiver, &[]);
    }
    let body = json!({ "url": receiver.url });
    let refused = ann.send("POST", "/api/webhook/", &body).unwrap();
    let refused = refused.expect(400).unwrap();
    assert!(
        refused["non_field_errors"][0]
            .as_str()
            .unwrap()
            .contains("20"),
        "{refused}"
    );
    // A key that only reads changes nothing.
    let reader = json!({ "name": "reader", "scopes": ["read"] });
    let reader = ann
        .send("POST", "/api/key/", &reader)
        .unwrap()
        .expect(201)
        .unwrap();
    let reader = wharf_tests::Api::new(server.base_url(), reader["key"].as_str().unwrap());
    assert_eq!(reader.get(&webhook).unwrap().status, 200);
    post(&reader, &format!("{webhook}test/"), 403);
    post(&reader, &format!("{webhook}rotate/"), 403);
    assert_eq!(
        reader
            .send("DELETE", &webhook, &Value::Null)
            .unwrap()
            .status,
        403
    );
    server.finish().unwrap();
}

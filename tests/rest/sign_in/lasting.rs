//! Lasting access: keys and approved programs need a recent sign-in, expire by default, and end by request.

use super::{ANN, ConsoleBrowser, PASSWORD};
use crate::bill::fake_clock;
use crate::{Expected, start};
use serde_json::{Value, json};
use std::process::Command;
use std::time::Duration;
use wharf_tests::{Api, interval};

#[test]
fn a_key_and_a_program_need_a_recent_sign_in() {
    let Some(clock) = fake_clock() else { return };
    clock.set("-10d").unwrap();
    let server = clock.server("").unwrap();
    let mut browser = ConsoleBrowser::new(&server);
    browser.accept(&server, ANN);
    clock.set("-9d").unwrap();
    server.cli(&["clock", "adopt"]).unwrap();
    let program = Api::new(server.base_url(), "");
    let device = program.send("POST", "/auth/device/", &json!({})).unwrap();
    let code = device.is(200)["user_code"].clone();
    let approve = "/auth/device/approve/";
    for (path, body) in [
        ("/api/key/", json!({ "scopes": ["read"] })),
        (approve, json!({ "user_code": code })),
        ("/api/webhook/", json!({ "url": "https://example.org/" })),
    ] {
        let refused = browser.send("POST", path, &body).is(403);
        let detail = refused["detail"].as_str().unwrap();
        assert!(detail.contains("15 minutes"), "{path}: {detail}");
    }
    browser.sign_in(PASSWORD);
    let body = json!({ "user_code": code });
    browser.send("POST", approve, &body).is(204);
    browser.send("POST", "/api/key/", &json!({})).is(201);
    server.finish().unwrap();
}

/// A time as seconds since 1970.
fn seconds(time: &Value) -> i64 {
    let mut date = Command::new("date");
    let date = date.args(["+%s", "-d", time.as_str().unwrap()]);
    let printed = date.output().unwrap().stdout;
    String::from_utf8(printed).unwrap().trim().parse().unwrap()
}

#[test]
fn keys_of_a_session_expire_after_90_days_unless_their_user_says_otherwise() {
    let (server, key) = start();
    let mut browser = ConsoleBrowser::new(&server);
    browser.accept(&server, ANN);
    let make = |body: Value| browser.send("POST", "/api/key/", &body);
    let made = make(json!({ "expires_at": null })).is(201);
    assert_eq!(
        seconds(&made["expires_at"]) - seconds(&made["created_at"]),
        90 * 24 * 3600
    );
    assert_eq!(
        make(json!({ "expires_at": "never" })).is(201)["expires_at"],
        Value::Null
    );
    let chosen = make(json!({ "expires_at": "2031-01-01" })).is(201);
    assert_eq!(chosen["expires_at"], "2031-01-01T00:00:00.000Z");
    let wrong = make(json!({ "expires_at": "soon" })).is(400);
    assert!(wrong["expires_at"].to_string().contains("never"), "{wrong}");
    // A key gives at most its own time, and by default all of it.
    let by_key = key.send("POST", "/api/key/", &json!({})).unwrap();
    assert_eq!(by_key.is(201)["expires_at"], Value::Null);
    let short = Api::new(server.base_url(), chosen["key"].as_str().unwrap());
    let body = json!({ "expires_at": "never" });
    let refused = short.send("POST", "/api/key/", &body).unwrap().is(400);
    assert!(refused["expires_at"].is_array(), "{refused}");

    let program = Api::new(server.base_url(), "");
    let begin = || {
        program
            .send("POST", "/auth/device/", &json!({}))
            .unwrap()
            .is(200)
    };
    for (expiry, expires) in [(json!({}), true), (json!({ "expires_at": "never" }), false)] {
        let mut body = expiry;
        body["user_code"] = begin()["user_code"].clone();
        browser.send("POST", "/auth/device/approve/", &body).is(204);
        let keys = browser.get("/api/key/").is(200);
        let mut keys: Vec<_> = keys.as_array().unwrap().clone();
        keys.sort_by_key(|key| key["created_at"].to_string());
        let newest = keys.last().unwrap();
        assert_eq!(newest["expires_at"].is_string(), expires, "{newest}");
    }
    server.finish().unwrap();
}

#[test]
fn signing_out_everywhere_revokes_the_keys_made_since_a_time() {
    let (server, operators) = start();
    let mut browser = ConsoleBrowser::new(&server);
    browser.accept(&server, ANN);
    let make = || {
        // Times of creation differ.
        interval(Duration::from_millis(5));
        let made = browser.send("POST", "/api/key/", &json!({})).is(201);
        let key = Api::new(server.base_url(), made["key"].as_str().unwrap());
        (key, made["created_at"].clone())
    };
    let [(earlier, _), (since, time), (later, _)] = [make(), make(), make()];
    let derived = later.send("POST", "/api/key/", &json!({})).unwrap().is(201);
    let derived = Api::new(server.base_url(), derived["key"].as_str().unwrap());
    let path = "/auth/sign-out-everywhere/";
    let wrong = browser.send("POST", path, &json!({ "revoke_keys_since": "today" }));
    assert!(wrong.is(400)["revoke_keys_since"].is_array());
    assert!(browser.is_signed_in());
    browser
        .send("POST", path, &json!({ "revoke_keys_since": time }))
        .is(204);
    assert!(!browser.is_signed_in());
    let statuses = [&operators, &earlier, &since, &later, &derived]
        .map(|key| key.get("/api/instance/").unwrap().status);
    assert_eq!(statuses, [200, 200, 401, 401, 401]);
    let records = operators.get("/api/audit/").is(200);
    let records = records.as_array().unwrap().iter();
    let revoked = records.filter(|record| record["operation"] == "key.revoke");
    assert_eq!(revoked.count(), 3);
    server.finish().unwrap();
}

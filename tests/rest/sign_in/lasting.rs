//! Lasting access: keys and approved programs expire by default, and end by request.

use super::{ANN, ConsoleBrowser};
use crate::{Expected, millis, recorded, start};
use serde_json::{Value, json};
use std::time::Duration;
use wharf_tests::{Api, interval};

#[test]
fn keys_of_a_session_expire_after_90_days_unless_their_user_says_otherwise() {
    let (server, key) = start();
    let browser = ConsoleBrowser::accepted(&server, ANN);
    let make = |body: Value| browser.send("POST", "/api/key/", &body);
    let made = make(json!({ "expires_at": null })).is(201);
    // The row is written a moment after its expiry is chosen.
    let time = millis(&made["expires_at"]) - millis(&made["created_at"]);
    let days = 90 * 24 * 3_600_000;
    assert!((days - 60_000..=days).contains(&time), "{time}");
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
    let refused = short.send("POST", "/api/key/", &body).is(400);
    assert!(refused["expires_at"].is_array(), "{refused}");

    let program = Api::new(server.base_url(), "");
    let begin = || program.send("POST", "/auth/device/", &json!({})).is(200);
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
}

#[test]
fn signing_out_everywhere_revokes_the_keys_made_since_a_time() {
    let (server, operators) = start();
    let browser = ConsoleBrowser::accepted(&server, ANN);
    let make = || {
        // Times of creation differ.
        interval(Duration::from_millis(5));
        let made = browser.send("POST", "/api/key/", &json!({})).is(201);
        let key = Api::new(server.base_url(), made["key"].as_str().unwrap());
        (key, made["created_at"].clone())
    };
    let [(earlier, _), (since, time), (later, _)] = [make(), make(), make()];
    let derived = later.send("POST", "/api/key/", &json!({})).is(201);
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
    assert_eq!(recorded(&operators, "key.revoke").len(), 3);
}

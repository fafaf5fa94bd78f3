//! Keys for programs, which users approve in the console.

use crate::sign_in::ConsoleBrowser;
use crate::{Expected, recorded, start};
use serde_json::{Value, json};
use std::time::Duration;
use wharf_tests::{Answer, Api, Server, interval};

fn ask(server: &Server, device: &Value) -> Answer {
    // Questions have an interval.
    interval(Duration::from_millis(1100));
    let body = json!({ "device_code": device["device_code"] });
    let program = Api::new(server.base_url(), "");
    program.send("POST", "/auth/device/token/", &body).unwrap()
}

fn error(answer: Answer) -> Value {
    answer.is(400)["error"].clone()
}

#[test]
fn a_program_gets_a_key_once_its_user_approves() {
    let (server, ann) = start();
    let program = Api::new(server.base_url(), "");
    let begin = |body: &Value| program.send("POST", "/auth/device/", body).unwrap();
    let device = begin(&json!({ "name": "laptop" })).is(200);
    let code = device["user_code"].as_str().unwrap();
    let url = device["verification_url"].as_str().unwrap();
    assert!(url.starts_with("http://localhost:") && url.ends_with(&format!("/device#{code}")));
    assert_eq!(error(ask(&server, &device)), "authorization_pending");
    let body = json!({ "device_code": device["device_code"] });
    let early = program.send("POST", "/auth/device/token/", &body).unwrap();
    assert_eq!(error(early), "slow_down");

    let mut browser = ConsoleBrowser::new(&server);
    let approve = |browser: &ConsoleBrowser, body: Value| {
        browser.send("POST", "/auth/device/approve/", &body)
    };
    let approval = json!({ "user_code": code.to_lowercase(), "scopes": ["read"] });
    assert_eq!(approve(&browser, approval.clone()).status, 401);
    // A key approves nothing.
    let by_key = ann
        .send("POST", "/auth/device/approve/", &approval)
        .unwrap();
    assert_eq!(by_key.status, 401);
    browser.accept(&server, "ann@example.com");
    let wrong = approve(&browser, json!({ "user_code": "BCDF-GHJK" }));
    assert!(wrong.is(400)["user_code"].is_array());
    let wrong = approve(&browser, json!({ "user_code": code, "scopes": ["all"] }));
    assert!(wrong.is(400)["scopes"].is_array());
    assert_eq!(error(ask(&server, &device)), "authorization_pending");
    approve(&browser, approval.clone()).is(204);
    assert_eq!(approve(&browser, approval).status, 400);

    let granted = ask(&server, &device);
    assert_eq!(granted.header("cache-control"), Some("no-store"));
    let granted = granted.is(200);
    assert_eq!(granted["email"], "ann@example.com");
    let reader = Api::new(server.base_url(), granted["key"].as_str().unwrap());
    assert!(reader.list().unwrap().is_empty());
    let body = wharf_tests::small("container");
    assert_eq!(reader.create(&body).unwrap().status, 403);
    assert_eq!(error(ask(&server, &device)), "expired_token");
    let keys = ann.get("/api/key/").is(200);
    let mut names = keys.as_array().unwrap().iter().map(|key| &key["name"]);
    assert!(names.any(|name| name == "laptop"));
    let actors = recorded(&ann, "key.new");
    let mut actors = actors
        .iter()
        .map(|record| record["actor"].as_str().unwrap());
    assert!(actors.any(|actor| actor.starts_with("session:")));

    let denied = begin(&json!({})).is(200);
    let denial = json!({ "user_code": denied["user_code"], "deny": true });
    approve(&browser, denial).is(204);
    assert_eq!(error(ask(&server, &denied)), "access_denied");
    let long = begin(&json!({ "name": "x".repeat(101) })).is(400);
    assert!(long["name"].is_array());
}

#[test]
fn guesses_of_codes_are_limited() {
    let (server, _) = start();
    let browser = ConsoleBrowser::accepted(&server, "ann@example.com");
    let guess = || {
        let body = json!({ "user_code": "BCDF-GHJK", "deny": true });
        browser.send("POST", "/auth/device/approve/", &body).status
    };
    assert_eq!(guess(), 400);
    assert!((0..20).map(|_| guess()).any(|status| status == 429));
    assert!(browser.is_signed_in());
}

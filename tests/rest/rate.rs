//! The rates of requests of API keys and of users.

use crate::sign_in::{ANN, ConsoleBrowser};
use crate::{Expected, has, start_under, until_true};
use serde_json::Value;
use wharf_tests::{Api, Server};

fn start(limits: &str) -> Server {
    start_under(&format!("[limits]\n{limits}\n"), "").0
}

#[test]
fn a_key_beyond_its_burst_is_429_and_other_keys_are_not() {
    let server = start("requests_per_second = 1");
    let (ann, bob) = (
        server.user("ann@example.com").unwrap(),
        server.user("bob@example.com").unwrap(),
    );
    let second = server.user("ann@example.com").unwrap();
    let refused = loop {
        let answer = ann.get("/api/instance/").unwrap();
        if answer.status != 200 {
            break answer;
        }
    };
    assert_eq!(refused.status, 429, "{refused:?}");
    assert!(refused.body["detail"].is_string());
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(
        refused.header("ratelimit-policy"),
        Some("\"key\";q=10;w=10")
    );
    assert_eq!(refused.header("ratelimit"), Some("\"key\";r=0;t=1"));
    // Every route counts, unknown ones too, and nothing else is learnt.
    let unknown = loop {
        let answer = ann.get("/api/nothing/").unwrap();
        if answer.status != 404 {
            break answer;
        }
    };
    assert_eq!(unknown.status, 429);
    for other in [&bob, &second] {
        assert_eq!(other.get("/api/instance/").unwrap().status, 200);
    }
    // The public routes do not count, and a wrong key is a 401 as ever.
    for _ in 0..5 {
        assert_eq!(ann.get("/healthz").unwrap().status, 200);
    }
    until_true("the key may send requests again", || {
        ann.get("/api/instance/").unwrap().status == 200
    });
}

#[test]
fn all_keys_and_sessions_of_a_user_share_one_rate() {
    let server = start("requests_per_second_per_user = 1");
    let bob = server.user("bob@example.com").unwrap();
    let session = ConsoleBrowser::accepted(&server, ANN);
    let keys = [(); 4].map(|()| server.user(ANN).unwrap());
    let answers = (0..5).flat_map(|_| keys.iter().map(|key| key.get("/api/instance/").unwrap()));
    let refused = answers.into_iter().find(|answer| answer.status != 200);
    let refused = refused.expect("five requests with each of four keys");
    assert_eq!(refused.status, 429, "{refused:?}");
    assert_eq!(
        refused.header("ratelimit-policy"),
        Some("\"user\";q=10;w=10")
    );
    assert_eq!(refused.header("retry-after"), Some("1"));
    has(&refused.body["detail"], "API keys and sessions");
    assert_eq!(session.get("/auth/passkey/").status, 429);
    // Another key, which may have been stolen, does not keep the user from an end.
    keys[0].act("no-such", "stop").is(404);
    let id = keys[3].key().split('_').nth(1).unwrap();
    let revoked = keys[0].send("DELETE", &format!("/api/key/{id}/"), &Value::Null);
    revoked.is(204);
    assert_eq!(bob.get("/api/instance/").unwrap().status, 200);
}

#[test]
fn a_user_has_a_rate_without_any_setting() {
    let server = start("");
    let keys = [(); 10].map(|()| server.user(ANN).unwrap());
    let refused = std::thread::scope(|scope| {
        let flood = |key: &Api| {
            let mut statuses = (0..400).map(|_| key.get("/api/instance/").unwrap().status);
            statuses.any(|status| status == 429)
        };
        let threads = keys.each_ref().map(|key| scope.spawn(move || flood(key)));
        threads.map(|thread| thread.join().unwrap())
    });
    assert!(refused.contains(&true));
}

#[test]
fn zero_is_no_limit() {
    let server = start("requests_per_second = 0\nrequests_per_second_per_user = 0");
    let api = server.user("ann@example.com").unwrap();
    for _ in 0..50 {
        assert_eq!(api.get("/api/instance/").unwrap().status, 200);
    }
}

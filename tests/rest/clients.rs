//! Clients behind a proxy, and clients that use up what others need.

use crate::sign_in::{ANN, ConsoleBrowser, PASSWORD};
use crate::{Expected, has, start_under, until_logged};
use serde_json::{Value, json};
use wharf_tests::{Answer, Api, Server, small};

const TRUSTED: &str = "trusted_proxies = [\"127.0.0.1\"]\n";

fn start(top: &str, limits: &str) -> Server {
    start_under(&format!("{top}[limits]\n{limits}\n"), "").0
}

/// Sends a request as a proxy does for its client.
fn forwarded(api: &Api, client: &str, method: &str, path: &str, body: &Value) -> Answer {
    let headers = [("X-Forwarded-For", client)];
    api.send_with(method, path, &headers, body).unwrap()
}

#[test]
fn a_client_of_a_proxy_uses_up_no_attempts_of_others() {
    let server = start(TRUSTED, "");
    let proxy = Api::new(server.base_url(), "");
    let body = json!({ "token": "1.x" });
    let attempt = |client: &str| forwarded(&proxy, client, "POST", "/auth/invite/", &body).status;
    assert!((0..40).any(|_| attempt("192.0.2.1") == 429));
    // Its own header is before the address that the proxy appends.
    assert_eq!(attempt("192.0.2.2, 192.0.2.1"), 429);
    assert_eq!(attempt("192.0.2.2"), 400);
    assert_eq!(attempt("2001:db8::1"), 400);
}

#[test]
fn the_forwarded_address_is_in_the_audit_log_and_the_access_log() {
    for (top, client) in [(TRUSTED, "192.0.2.1"), ("", "127.0.0.1")] {
        let server = start(top, "");
        let ann = server.user(ANN).unwrap();
        let body = small("container");
        forwarded(&ann, "192.0.2.1", "POST", "/api/instance/", &body).is(201);
        let records = ann.get("/api/audit/").is(200);
        let records = records.as_array().unwrap();
        assert_eq!(records.last().unwrap()["peer"], client);
        until_logged(&server, &format!("client={client}"));
        let other = if top.is_empty() {
            "192.0.2.1"
        } else {
            "203.0.113.9"
        };
        assert!(!server.log().contains(&format!("client={other}")));
    }
}

#[test]
fn requests_of_a_proxy_count_as_connections_of_their_client() {
    let server = start(TRUSTED, "connections_per_peer = 2");
    let ann = server.user(ANN).unwrap();
    let list = |client: &str| forwarded(&ann, client, "GET", "/api/instance/", &Value::Null).status;
    let streams: Vec<_> = (0..2)
        .map(|_| {
            ureq::get(format!("{}/api/event/", server.base_url()))
                .header("Authorization", format!("Bearer {}", ann.key()))
                .header("Accept", "text/event-stream")
                .header("X-Forwarded-For", "192.0.2.1")
                .call()
                .unwrap()
        })
        .collect();
    assert_eq!(list("192.0.2.1"), 503);
    assert_eq!(list("192.0.2.2"), 200);
    drop(streams);
    crate::wait_until("the client has a free connection again", || {
        Ok((list("192.0.2.1") == 200).then_some(()))
    });
}

#[test]
fn requests_of_programs_take_no_place_of_another_network() {
    let server = start(TRUSTED, "");
    let program = Api::new(server.base_url(), "");
    let begin = |client: &str| {
        let answer = forwarded(&program, client, "POST", "/auth/device/", &json!({}));
        answer.is(200)["device_code"].clone()
    };
    let waiting = begin("192.0.2.1");
    for network in 0..50 {
        for _ in 0..20 {
            begin(&format!("198.51.100.{network}"));
        }
    }
    // All 1000 places were taken.
    begin("192.0.2.2");
    let body = json!({ "device_code": waiting });
    let asked = program.send("POST", "/auth/device/token/", &body).is(400);
    assert_eq!(asked["error"], "authorization_pending");
}

/// A browser of a client behind a proxy.
struct Client<'a> {
    browser: ConsoleBrowser,
    address: &'a str,
}

impl<'a> Client<'a> {
    fn new(server: &Server, address: &'a str) -> Self {
        let browser = ConsoleBrowser::new(server);
        Self { browser, address }
    }

    fn send(&self, path: &str, body: &Value) -> Answer {
        let headers = [
            ("Sec-Fetch-Site", "same-origin"),
            ("X-Forwarded-For", self.address),
        ];
        self.browser.send_from("POST", path, &headers, body)
    }

    fn sign_in(&self, password: &str) -> Answer {
        let body = json!({ "email": ANN, "password": password });
        self.send("/auth/sign-in/", &body)
    }

    /// Keeps the proof that Ann has signed in with this browser, and not the session.
    fn remember(&mut self, answer: &Answer) {
        let cookies = answer.headers.get_all("set-cookie").iter();
        let mut cookies = cookies.map(|cookie| cookie.to_str().unwrap());
        let proof = cookies.find(|cookie| cookie.starts_with("wharf-browser-"));
        let proof = proof.unwrap();
        has(proof, "HttpOnly; SameSite=Lax");
        proof
            .split(';')
            .next()
            .unwrap()
            .clone_into(&mut self.browser.cookie);
    }
}

/// Tries a wrong password as a stranger until the account is closed to a network.
fn guess(server: &Server, address: &str) {
    let stranger = Client::new(server, address);
    let mut guesses = (0..20).map(|_| stranger.sign_in("not the password").status);
    assert!(guesses.any(|status| status == 429), "{address}");
}

/// Tries wrong passwords as strangers in networks of their own, until the account is closed to all.
pub fn close_account(server: &Server, number: u8) {
    let is_closed = |network: u8| {
        let address = format!("203.0.{number}.{network}");
        let stranger = Client::new(server, &address);
        let guess = || stranger.sign_in("not the password").status;
        let is_first_refused = guess() == 429;
        for _ in 1..10 {
            guess();
        }
        is_first_refused
    };
    assert!((0..200).any(is_closed));
}

#[test]
fn strangers_do_not_use_up_the_attempts_of_a_user_or_a_session() {
    let server = start(TRUSTED, "");
    let mut ann = Client::new(&server, "192.0.2.1");
    ann.browser.accept(&server, ANN);
    guess(&server, "198.51.100.1");
    Client::new(&server, "192.0.2.1").sign_in(PASSWORD).is(204);
    // A session has attempts of its own, even in the network of the stranger.
    ann.address = "198.51.100.1";
    let wrong = json!({ "current": "wrong", "new": "another good password" });
    assert!(ann.send("/auth/password/", &wrong).is(400)["current"].is_array());
    let code = json!({ "user_code": "BCDF-GHJK", "deny": true });
    assert!(ann.send("/auth/device/approve/", &code).is(400)["user_code"].is_array());
    // Another session of the user has its own.
    while ann.send("/auth/password/", &wrong).status != 429 {}
    let mut other = Client::new(&server, "192.0.2.2");
    let signed_in = other.sign_in(PASSWORD);
    other.browser.keep_cookie(signed_in);
    assert_eq!(other.send("/auth/password/", &wrong).status, 400);
}

#[test]
fn strangers_in_many_networks_do_not_lock_out_a_browser_that_was_signed_in_before() {
    let server = start(TRUSTED, "");
    let mut ann = Client::new(&server, "192.0.2.1");
    ann.browser.accept(&server, ANN);
    let mut known = Client::new(&server, "192.0.2.3");
    let signed_in = known.sign_in(PASSWORD);
    known.remember(&signed_in);
    close_account(&server, 1);
    // The account is closed to browsers that are not known, with the right password too.
    let mut unknown = Client::new(&server, "192.0.2.4");
    assert_eq!(unknown.sign_in(PASSWORD).status, 429);
    let (name, proof) = known.browser.cookie.split_once('=').unwrap();
    let forged = proof.replacen('.', ".A", 1);
    for proof in ["", "1.", &forged] {
        unknown.browser.cookie = format!("{name}={proof}");
        assert_eq!(unknown.sign_in(PASSWORD).status, 429, "{proof}");
    }
    assert_eq!(known.sign_in(PASSWORD).status, 204);
    // The proof opens nothing.
    assert!(!known.browser.is_signed_in());
    // A new password ends the proof.
    let body = json!({ "current": PASSWORD, "new": "another good password" });
    let changed = ann.send("/auth/password/", &body);
    assert_eq!(changed.status, 204);
    close_account(&server, 2);
    assert_eq!(known.sign_in("another good password").status, 429);
    known.remember(&changed);
    assert_eq!(known.sign_in("another good password").status, 204);
    // A known browser guesses no more than others.
    let mut guesses = (0..20).map(|_| known.sign_in("not the password").status);
    assert!(guesses.any(|status| status == 429));
}

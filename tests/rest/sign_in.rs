//! Sign-in to the console: invitations, passwords, sessions, and disabled users.

mod browser;
mod lasting;
mod plain_http;
mod spellings;
mod work;

pub use browser::{ANN, ConsoleBrowser, PASSWORD, invitation};

use crate::bill::fake_clock;
use crate::{Expected, has, recorded, start, start_lasting, stores_none, wait_until};
use serde_json::{Value, json};
use wharf_tests::Api;

#[test]
fn an_invitation_is_accepted_once_and_begins_a_session() {
    let (server, key) = start();
    let mut browser = ConsoleBrowser::new(&server);
    let options = browser.get("/auth/options/").is(200);
    assert_eq!(options["password"], true);
    let (earlier, token) = (invitation(&server, ANN), invitation(&server, ANN));
    let show = |token: &str| browser.send("POST", "/auth/invite/", &json!({ "token": token }));
    for _ in 0..2 {
        assert_eq!(show(&token).is(200)["email"], ANN);
    }
    let altered = format!("{token}x");
    for wrong in [earlier.as_str(), altered.as_str(), "1.x", "x", "", "99.x"] {
        let refused = show(wrong).is(400);
        assert!(refused["token"].is_array(), "{wrong}: {refused}");
    }
    let accept = |password: &str| {
        let body = json!({ "token": token, "password": password });
        browser.send("POST", "/auth/invite/accept/", &body)
    };
    for wrong in ["elevenchars".to_owned(), "x".repeat(257), String::new()] {
        let refused = accept(&wrong).is(400);
        assert!(refused["password"].is_array(), "{refused}");
    }
    let accepted = accept(PASSWORD);
    assert!(accept(PASSWORD).is(400)["token"].is_array());
    browser.keep_cookie(accepted);
    let session = browser.get("/api/session/").is(200);
    assert_eq!(session["email"], json!(ANN));
    assert_eq!(session["kind"], "session");
    assert_eq!(session["has_password"], true);
    let by_key = key.get("/api/session/").is(200);
    assert_eq!(by_key["kind"], "key");
    // An invitation changes nothing until it is accepted.
    let again = invitation(&server, ANN);
    assert!(browser.is_signed_in());
    let mut other = ConsoleBrowser::new(&server);
    other.sign_in(PASSWORD);
    let body = json!({ "token": again, "password": "another password" });
    let answer = other.send("POST", "/auth/invite/accept/", &body);
    assert!(!browser.is_signed_in() && !other.is_signed_in());
    other.keep_cookie(answer);
    assert!(other.is_signed_in());
}

#[test]
fn an_unknown_user_and_a_wrong_password_are_refused_alike_and_the_rate_is_limited() {
    let (server, _) = start();
    let browser = ConsoleBrowser::accepted(&server, ANN);
    let stranger = ConsoleBrowser::new(&server);
    let attempt = |email: &str, password: &str| {
        let body = json!({ "email": email, "password": password });
        stranger.send("POST", "/auth/sign-in/", &body)
    };
    server.cli(&["key", "new", "bob@example.com"]).unwrap();
    let wrong = attempt(ANN, "not the password").is(400);
    assert!(wrong["detail"].is_string());
    let long = "x".repeat(10_000);
    for (email, password) in [
        ("nobody@example.com", PASSWORD),
        // A user without a password.
        ("bob@example.com", ""),
        (ANN, ""),
        (ANN, long.as_str()),
    ] {
        assert_eq!(attempt(email, password).is(400), wrong);
    }
    assert_eq!(attempt(ANN, PASSWORD).status, 204);
    for _ in 0..6 {
        attempt(ANN, "not the password").is(400);
    }
    // The account is closed to the right password too, and other accounts are not.
    let limited = attempt(ANN, PASSWORD);
    let retry_after: u64 = limited.header("retry-after").unwrap().parse().unwrap();
    assert_eq!(limited.status, 429, "{limited:?}");
    assert!((1..=30).contains(&retry_after));
    attempt("bob@example.com", "x").is(400);
    assert!(browser.is_signed_in());
    let mut tries = (0..400).map(|_| {
        let body = json!({ "token": "1.x" });
        stranger.send("POST", "/auth/invite/", &body).status
    });
    assert!(tries.any(|status| status == 429));
}

#[test]
fn a_session_does_what_a_key_does_if_the_request_comes_from_the_console() {
    let (server, key) = start();
    let browser = ConsoleBrowser::accepted(&server, ANN);
    let body = json!({
        "resource_type": "container", "n_vcpus": 1, "mem_gib": 1, "disk_size_gib": 10,
    });
    let origin = server.base_url().to_owned();
    let secure = origin.replace("http:", "https:");
    let elsewhere = origin.replace("127.0.0.1", "localhost");
    for headers in [
        &[("Sec-Fetch-Site", "same-origin")][..],
        &[("Origin", origin.as_str())],
        &[
            ("Sec-Fetch-Site", "same-origin"),
            ("Origin", origin.as_str()),
        ],
    ] {
        let made = browser.send_from("POST", "/api/instance/", headers, &body);
        made.is(201);
    }
    for headers in [
        &[][..],
        &[("Sec-Fetch-Site", "same-site")],
        &[
            ("Sec-Fetch-Site", "cross-site"),
            ("Origin", "https://evil.example"),
        ],
        &[
            ("Sec-Fetch-Site", "cross-site"),
            ("Origin", origin.as_str()),
        ],
        &[
            ("Sec-Fetch-Site", "same-origin"),
            ("Origin", secure.as_str()),
        ],
        &[("Origin", secure.as_str())],
        &[("Origin", elsewhere.as_str())],
        &[("Origin", "null")],
        &[("Origin", "http://127.0.0.1:30000")],
        &[("Origin", "http://localhost")],
    ] {
        let refused = browser.send_from("POST", "/api/instance/", headers, &body);
        assert_eq!(refused.status, 403, "{headers:?}");
        let upgrade = [headers, &[("Upgrade", "websocket")]].concat();
        let refused = browser.send_from("GET", "/api/instance/", &upgrade, &Value::Null);
        assert_eq!(refused.status, 403, "{headers:?}");
        let read = browser.send_from("GET", "/api/instance/", headers, &Value::Null);
        assert_eq!(read.is(200).as_array().unwrap().len(), 3);
        let out = browser.send_from("POST", "/auth/sign-out/", headers, &Value::Null);
        assert_eq!(out.status, 403, "{headers:?}");
    }
    assert_eq!(key.list().unwrap().len(), 3);
    // A page elsewhere, and one on the host of instances' pages, cannot sign in either.
    for headers in [
        [("Origin", "https://evil.example")],
        [("Origin", origin.as_str())],
        [("Sec-Fetch-Site", "cross-site")],
    ] {
        let body = json!({ "email": ANN, "password": PASSWORD });
        let stranger = ConsoleBrowser::new(&server);
        let refused = stranger.send_from("POST", "/auth/sign-in/", &headers, &body);
        assert_eq!(refused.status, 403, "{headers:?}");
    }
    // The key wins, even if it is wrong.
    let mixed = [("Cookie", browser.cookie.as_str())];
    let wrong = Api::new(server.base_url(), "wharf_0_x");
    let answer = wrong.send_with("GET", "/api/instance/", &mixed, &Value::Null);
    assert_eq!(answer.unwrap().status, 401);
    // A key of a session has what it asks for.
    let made = browser.send("POST", "/api/key/", &json!({ "scopes": ["read"] }));
    made.is(201);
    let id = browser.cookie.split(['=', '.']).nth(1).unwrap();
    let by_session = |operation: &str| {
        let records = recorded(&key, operation);
        let own = records
            .iter()
            .filter(|r| r["actor"] == format!("session:{id}"));
        own.count()
    };
    assert_eq!(
        ["session.begin", "instance.create", "key.new"].map(by_session),
        [1, 3, 1]
    );
}

#[test]
fn sessions_end_by_sign_out_a_new_password_and_their_number() {
    let (server, _) = start();
    let first = ConsoleBrowser::accepted(&server, ANN);
    let mut others: Vec<ConsoleBrowser> = (0..5).map(|_| ConsoleBrowser::new(&server)).collect();
    others
        .iter_mut()
        .for_each(|browser| browser.sign_in(PASSWORD));
    let out = others[0].send("POST", "/auth/sign-out/", &Value::Null);
    assert!(out.header("set-cookie").unwrap().contains("Max-Age=0"));
    out.is(204);
    assert!(!others[0].is_signed_in() && others[1].is_signed_in());
    let again = others[0].send("POST", "/auth/sign-out/", &Value::Null);
    assert_eq!(again.status, 401);

    let change = |current: &Value, new: &str| {
        let body = json!({ "current": current, "new": new });
        others[1].send("POST", "/auth/password/", &body)
    };
    for wrong in [json!("wrong"), Value::Null] {
        let refused = change(&wrong, "another password").is(400);
        assert!(refused["current"].is_array(), "{refused}");
    }
    let refused = change(&json!(PASSWORD), "short").is(400);
    assert!(refused["new"].is_array(), "{refused}");
    change(&json!(PASSWORD), "another password").is(204);
    assert!(others[1].is_signed_in() && !others[2].is_signed_in() && !first.is_signed_in());
    others[2].sign_in("another password");
    let everywhere = others[2].send("POST", "/auth/sign-out-everywhere/", &Value::Null);
    everywhere.is(204);
    assert!(others.iter().all(|browser| !browser.is_signed_in()));
}

#[test]
fn the_oldest_session_makes_room_for_the_eleventh() {
    let (server, _) = start();
    let first = ConsoleBrowser::accepted(&server, ANN);
    let mut others: Vec<ConsoleBrowser> = (0..10).map(|_| ConsoleBrowser::new(&server)).collect();
    for browser in &mut others {
        assert!(first.is_signed_in());
        browser.sign_in(PASSWORD);
    }
    assert!(!first.is_signed_in());
    assert!(others.iter().all(ConsoleBrowser::is_signed_in));
}

#[test]
fn tokens_and_passwords_are_not_on_disk_and_sessions_survive_a_kill() {
    let (mut server, _) = start();
    let browser = ConsoleBrowser::accepted(&server, ANN);
    let unused = invitation(&server, "bob@example.com");
    server.kill().unwrap();
    server.run().unwrap();
    let mut again = ConsoleBrowser::new(&server);
    again.cookie.clone_from(&browser.cookie);
    again.part.clone_from(&browser.part);
    assert!(again.is_signed_in());
    server.terminate().unwrap();
    let secret = |token: &str| token.split('.').nth(1).unwrap().to_owned();
    let (cookie, invited) = (secret(&browser.cookie), secret(&unused));
    stores_none(&server, &[&cookie, &browser.part, &invited, PASSWORD]);
    // Invitations need no running server, but its address.
    let args = ["user", "invite", ANN];
    let refused = server.cli(&args).unwrap_err().to_string();
    assert!(refused.contains("base_url"), "{refused}");
    let config = std::fs::read_to_string(server.config_path()).unwrap();
    let config = format!("base_url = \"https://wharf.example\"\n{config}");
    std::fs::write(server.config_path(), config).unwrap();
    let link = server.cli(&args).unwrap();
    assert!(link.starts_with("https://wharf.example/invite#"), "{link}");
    server.run().unwrap();
    let token = link.trim().split('#').nth(1).unwrap();
    let body = json!({ "token": token, "password": PASSWORD });
    let answer = ConsoleBrowser::new(&server).send("POST", "/auth/invite/accept/", &body);
    let cookie = answer.header("set-cookie").unwrap().to_owned();
    assert!(cookie.starts_with("__Host-wharf="), "{cookie}");
    assert!(cookie.ends_with("; Secure"), "{cookie}");
}

#[test]
fn sessions_and_invitations_expire() {
    let Some(clock) = fake_clock() else { return };
    clock.set("-60d").unwrap();
    let server = clock.server("").unwrap();
    let mut browser = ConsoleBrowser::accepted(&server, ANN);
    let token = invitation(&server, "bob@example.com");
    let is_invited = || {
        let body = json!({ "token": token });
        browser.send("POST", "/auth/invite/", &body).status == 200
    };
    let to = |offset: &str| {
        clock.set(offset).unwrap();
        server.cli(&["clock", "adopt"]).unwrap();
    };
    to("-58d");
    assert!(browser.is_signed_in() && is_invited());
    // The request two days later kept the session alive, and not the invitation.
    to("-56d");
    assert!(browser.is_signed_in() && !is_invited());
    to("-52d");
    assert!(!browser.is_signed_in(), "idle for four days");
    browser.sign_in(PASSWORD);
    for day in 0..14 {
        to(&format!("-{}d", 50 - 2 * day));
        assert!(browser.is_signed_in(), "day {day}");
    }
    to("-21d");
    assert!(!browser.is_signed_in(), "signed in 31 days ago");
}

#[test]
fn keys_and_sessions_of_a_disabled_user_are_refused() {
    let (mut server, key) = start_lasting("");
    key.small_container().unwrap();
    let browser = ConsoleBrowser::accepted(&server, ANN);
    let token = invitation(&server, ANN);
    server.cli(&["user", "disable", ANN]).unwrap();
    let list = || server.cli(&["user", "list"]).unwrap();
    assert!(list().trim().ends_with("\tdisabled"), "{}", list());
    let refused = key.get("/api/instance/").unwrap();
    assert_eq!(refused.is(401)["detail"], "Invalid or missing API key.");
    assert!(!browser.is_signed_in());
    let body = json!({ "email": ANN, "password": PASSWORD });
    assert_eq!(browser.send("POST", "/auth/sign-in/", &body).status, 400);
    let body = json!({ "token": token, "password": PASSWORD });
    assert_eq!(
        browser.send("POST", "/auth/invite/accept/", &body).status,
        400
    );
    assert!(server.cli(&["user", "invite", ANN]).is_err());
    server.kill().unwrap();
    server.run().unwrap();
    let (key, mut browser) = (server.again(&key), ConsoleBrowser::new(&server));
    assert_eq!(key.get("/api/instance/").unwrap().status, 401);
    server.cli(&["user", "enable", ANN]).unwrap();
    // The instance was not touched.
    let instances = key.list().unwrap();
    key.wait_for(instances[0]["uuid"].as_str().unwrap(), "running")
        .unwrap();
    browser.sign_in(PASSWORD);
    assert!(browser.is_signed_in());
    for (command, email) in [("disable", "x@example.com"), ("enable", "x@example.com")] {
        assert!(server.cli(&["user", command, email]).is_err());
    }
    for operation in ["user.invite", "user.disable", "user.enable"] {
        let mut records = recorded(&key, operation).into_iter();
        assert!(records.any(|r| r["actor"] == "operator"), "{operation}");
    }
}

#[test]
fn a_console_on_the_host_of_pages_is_refused_unless_sign_in_is_off() {
    let (mut server, api) = start();
    server.terminate().unwrap();
    let path = server.config_path().to_owned();
    let config = std::fs::read_to_string(&path).unwrap();
    let write = |more: &str| {
        let config = format!("base_url = \"http://127.0.0.1:8080\"\n{config}{more}");
        std::fs::write(&path, config).unwrap();
    };
    write("");
    let message = server.run().unwrap_err().to_string();
    for part in ["`base_url`", "`web.host`", "session.enabled", "cookie"] {
        has(&message, part);
    }
    write("\n[session]\nenabled = false\n");
    server.run().unwrap();
    let browser = ConsoleBrowser::new(&server);
    let options = browser.get("/auth/options/").is(200);
    assert_eq!(options["password"], false);
    let body = json!({ "email": ANN, "password": PASSWORD });
    assert_eq!(browser.send("POST", "/auth/sign-in/", &body).status, 403);
    let refused = server.cli(&["user", "invite", ANN]).unwrap_err();
    has(&refused, "session.enabled");
    assert!(server.again(&api).list().unwrap().is_empty());
}

#[test]
fn hashes_of_passwords_are_bounded() {
    let (server, _) = start();
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let attempts: Vec<_> = (0..150)
            .map(|n| {
                let browser = ConsoleBrowser::new(&server);
                scope.spawn(move || {
                    let email = format!("{n}@example.com");
                    let body = json!({ "email": email, "password": PASSWORD });
                    browser.send("POST", "/auth/sign-in/", &body).status
                })
            })
            .collect();
        attempts.into_iter().map(|a| a.join().unwrap()).collect()
    });
    assert!(statuses.iter().all(|status| [400, 503].contains(status)));
    assert!(
        statuses.contains(&400) && statuses.contains(&503),
        "{statuses:?}"
    );
    wait_until("the service has recovered", || {
        let body = json!({ "email": "a@example.com", "password": PASSWORD });
        let answer = ConsoleBrowser::new(&server).send("POST", "/auth/sign-in/", &body);
        Ok((answer.status == 400).then_some(()))
    });
}

//! Passkeys: made by invitation and on the account page, used to sign in, and removed.

mod authenticator;
mod refused;

use crate::bill::fake_clock;
use crate::clients::close_account;
use crate::sign_in::{ANN, ConsoleBrowser, PASSWORD, invitation};
use crate::{Expected, recorded, start, start_under};
use authenticator::Authenticator;
use serde_json::{Value, json};
use wharf_tests::{Answer, Api, Ports, Server, simulated_node};

const BEGIN: &str = "/auth/passkey/sign-in/options/";
const SIGN_IN: &str = "/auth/passkey/sign-in/";
const NEW: &str = "/auth/passkey/options/";
const PASSKEYS: &str = "/auth/passkey/";

fn post(browser: &ConsoleBrowser, path: &str, body: &Value) -> Answer {
    browser.send("POST", path, body)
}

/// Sends the use of a passkey for a new challenge.
fn sign_in(browser: &ConsoleBrowser, authenticator: &mut Authenticator) -> Answer {
    let options = post(browser, BEGIN, &Value::Null).is(200);
    let credential = authenticator.sign_in(&options);
    post(browser, SIGN_IN, &json!({ "credential": credential }))
}

/// Accepts an invitation with a passkey.
fn accept(
    browser: &mut ConsoleBrowser,
    server: &Server,
    authenticator: &mut Authenticator,
    email: &str,
) {
    let token = invitation(server, email);
    let begin = json!({ "token": token });
    let options = post(browser, "/auth/invite/passkey/options/", &begin);
    let credential = authenticator.make(&options.is(200));
    let body = json!({ "token": token, "credential": credential });
    let accepted = post(browser, "/auth/invite/passkey/", &body);
    browser.keep_cookie(accepted);
}

/// Adds a passkey to the account of a browser that is signed in.
fn add(browser: &ConsoleBrowser, authenticator: &mut Authenticator, name: &Value) -> Answer {
    let options = post(browser, NEW, &Value::Null).is(200);
    let credential = authenticator.make(&options);
    let body = json!({ "name": name, "credential": credential });
    post(browser, PASSKEYS, &body)
}

fn listed(browser: &ConsoleBrowser) -> Vec<Value> {
    let list = browser.get(PASSKEYS).is(200);
    list.as_array().unwrap().clone()
}

/// Checks that a response names the passkey as wrong.
#[track_caller]
fn assert_refused(answer: Answer) {
    assert_eq!(answer.status, 400, "{}", answer.body);
    assert!(answer.body["credential"].is_array(), "{}", answer.body);
}

#[test]
fn an_invitation_becomes_a_passkey_that_signs_in() {
    let (server, key) = start();
    let mut browser = ConsoleBrowser::new(&server);
    let options = browser.get("/auth/options/").is(200);
    assert_eq!(options["passkey"], true);
    let token = invitation(&server, ANN);
    let begin = json!({ "token": token });
    let options = post(&browser, "/auth/invite/passkey/options/", &begin);
    let options = options.is(200);
    assert_eq!(options["user"]["name"], ANN);
    assert_eq!(options["attestation"], "none");
    let mut authenticator = Authenticator::new(&server);
    let credential = authenticator.make(&options);
    for wrong in ["1.x", ""] {
        let body = json!({ "token": wrong, "credential": credential });
        let refused = post(&browser, "/auth/invite/passkey/", &body);
        assert!(refused.is(400)["token"].is_array());
    }
    let body = json!({ "token": token, "credential": credential });
    let accepted = post(&browser, "/auth/invite/passkey/", &body);
    browser.keep_cookie(accepted);
    let again = post(&browser, "/auth/invite/passkey/", &body);
    assert!(again.is(400)["token"].is_array());
    let session = browser.get("/api/session/").is(200);
    assert_eq!(session["email"], json!(ANN));
    assert_eq!(session["has_password"], false);

    let mut other = ConsoleBrowser::new(&server);
    let signed_in = sign_in(&other, &mut authenticator);
    other.keep_cookie(signed_in);
    assert!(other.is_signed_in());
    let passkeys = listed(&other);
    assert_eq!(passkeys.len(), 1);
    assert!(passkeys[0]["last_used_at"].is_string() && passkeys[0]["usable"] == true);
    // A passkey is no password.
    let body = json!({ "email": ANN, "password": "" });
    assert_eq!(post(&other, "/auth/sign-in/", &body).status, 400);
    let list = server.cli(&["user", "list"]).unwrap();
    assert!(list.contains("\tsign-in by 1 passkey"), "{list}");

    let count = |operation: &str, result: &str| {
        let records = recorded(&key, operation);
        records.iter().filter(|r| r["result"] == result).count()
    };
    assert_eq!(count("passkey.add", "by invitation"), 1);
    assert_eq!(count("session.begin", "invitation"), 1);
    assert_eq!(count("session.begin", "passkey"), 1);
}

#[test]
fn a_user_adds_names_and_removes_passkeys_but_not_the_last_way_in() {
    let (server, key) = start();
    let mut browser = ConsoleBrowser::new(&server);
    let mut first = Authenticator::new(&server);
    accept(&mut browser, &server, &mut first, ANN);
    let remove = |browser: &ConsoleBrowser, id: &str| {
        browser.send("DELETE", &format!("{PASSKEYS}{id}/"), &Value::Null)
    };
    let id = |passkey: &Value| passkey["id"].as_str().unwrap().to_owned();
    let first_id = id(&listed(&browser)[0]);
    let refused = remove(&browser, &first_id).is(400);
    let detail = refused["detail"].as_str().unwrap();
    assert!(detail.contains("last way to sign in"), "{detail}");

    // The browser is told which passkeys exist.
    let options = post(&browser, NEW, &Value::Null).is(200);
    assert_eq!(options["excludeCredentials"][0]["id"], json!(first.id()));
    let twice = first.make(&options);
    assert_refused(post(&browser, PASSKEYS, &json!({ "credential": twice })));
    let mut second = Authenticator::new(&server);
    let added = add(&browser, &mut second, &json!("Laptop")).is(201);
    assert_eq!(added["name"], "Laptop");
    assert!(added["last_used_at"].is_null());
    for name in [json!(""), json!("x".repeat(65)), json!("a\u{7}b"), json!(1)] {
        let refused = add(&browser, &mut Authenticator::new(&server), &name);
        assert!(refused.is(400)["name"].is_array(), "{name}");
    }
    let rename = |id: &str, name: &Value| {
        browser.send(
            "PATCH",
            &format!("{PASSKEYS}{id}/"),
            &json!({ "name": name }),
        )
    };
    let second_id = id(&added);
    assert_eq!(rename(&second_id, &json!("Telefon ☎")).status, 204);
    for wrong in [Value::Null, json!("")] {
        let refused = rename(&second_id, &wrong).is(400);
        assert!(refused["name"].is_array(), "{refused}");
    }
    let names: Vec<Value> = listed(&browser).iter().map(|p| p["name"].clone()).collect();
    assert_eq!(names, ["Passkey", "Telefon ☎"]);

    // Passkeys of others do not exist.
    let stranger = ConsoleBrowser::accepted(&server, "bob@example.com");
    assert!(listed(&stranger).is_empty());
    for missing in [second_id.as_str(), "0123456789abcdef", "x"] {
        assert_eq!(remove(&stranger, missing).status, 404);
    }
    assert_eq!(rename("0123456789abcdef", &json!("x")).status, 404);
    // A challenge is of the user who began it.
    let options = post(&browser, NEW, &Value::Null).is(200);
    let credential = Authenticator::new(&server).make(&options);
    assert_refused(post(
        &stranger,
        PASSKEYS,
        &json!({ "credential": credential }),
    ));

    remove(&browser, &first_id).is(204);
    assert_refused(sign_in(&stranger, &mut first));
    assert_eq!(sign_in(&stranger, &mut second).status, 204);
    assert_eq!(remove(&browser, &second_id).status, 400);
    // With a password, the last passkey can go.
    let body = json!({ "current": null, "new": PASSWORD });
    post(&browser, "/auth/password/", &body).is(204);
    remove(&browser, &second_id).is(204);
    assert!(listed(&browser).is_empty());
    let records = key.get("/api/audit/").is(200);
    let operations = records.as_array().unwrap().iter();
    let of_passkeys: Vec<&str> = operations
        .filter_map(|r| r["operation"].as_str()?.strip_prefix("passkey."))
        .collect();
    assert_eq!(of_passkeys, ["add", "add", "rename", "remove", "remove"]);
}

#[test]
fn ways_to_sign_in_keys_and_programs_need_a_recent_sign_in() {
    let Some(clock) = fake_clock() else { return };
    clock.set("-10d").unwrap();
    let server = clock.server("").unwrap();
    let mut browser = ConsoleBrowser::new(&server);
    let mut passkey = Authenticator::new(&server);
    accept(&mut browser, &server, &mut passkey, ANN);
    let options = post(&browser, NEW, &Value::Null).is(200);
    let credential = Authenticator::new(&server).make(&options);
    let hook = json!({ "url": "https://example.org/" });
    let made = post(&browser, "/api/webhook/", &hook).is(201);
    let rotate = format!("/api/webhook/{}/rotate/", made["id"].as_str().unwrap());
    clock.set("-9d").unwrap();
    server.cli(&["clock", "adopt"]).unwrap();
    let id = listed(&browser)[0]["id"].as_str().unwrap().to_owned();
    let path = format!("{PASSKEYS}{id}/");
    let other = Api::new(server.base_url(), "");
    let begun = other.send("POST", "/auth/device/", &json!({})).is(200);
    let program = json!({ "user_code": begun["user_code"] });
    let approve = "/auth/device/approve/";
    let bucket = json!({
        "name": "offsite", "endpoint": "https://s3.example.org", "bucket": "backups",
        "access_key_id": "key", "secret_access_key": "secret", "passphrase": PASSWORD,
    });
    for (method, path, body) in [
        ("POST", NEW, Value::Null),
        ("POST", PASSKEYS, json!({ "credential": credential })),
        ("DELETE", path.as_str(), Value::Null),
        ("DELETE", "/auth/identity/0123456789abcdef/", Value::Null),
        ("POST", "/auth/password/", json!({ "new": PASSWORD })),
        ("POST", "/api/key/", json!({ "scopes": ["read"] })),
        ("POST", approve, program.clone()),
        ("POST", "/api/webhook/", hook),
        ("POST", rotate.as_str(), Value::Null),
        ("POST", "/api/bucket/", bucket),
    ] {
        let refused = browser.send(method, path, &body).is(403);
        let detail = refused["detail"].as_str().unwrap();
        assert!(detail.contains("15 minutes"), "{method} {path}: {detail}");
    }
    let signed_in = sign_in(&browser, &mut passkey);
    browser.keep_cookie(signed_in);
    let another = add(&browser, &mut Authenticator::new(&server), &Value::Null);
    assert_eq!(another.status, 201);
    post(&browser, approve, &program).is(204);
    post(&browser, "/api/key/", &json!({})).is(201);
    post(&browser, &rotate, &Value::Null).is(200);
}

#[test]
fn a_passkey_signs_in_while_its_account_is_closed_to_passwords() {
    let (server, _) = start_under("trusted_proxies = [\"127.0.0.1\"]\n", "");
    let browser = ConsoleBrowser::accepted(&server, ANN);
    let mut passkey = Authenticator::new(&server);
    add(&browser, &mut passkey, &Value::Null).is(201);
    close_account(&server, 1);
    // This browser is not known to the account.
    let mut other = ConsoleBrowser::new(&server);
    let password = json!({ "email": ANN, "password": PASSWORD });
    assert_eq!(post(&other, "/auth/sign-in/", &password).status, 429);
    let signed_in = sign_in(&other, &mut passkey);
    other.keep_cookie(signed_in);
    assert!(other.is_signed_in());
}

#[test]
fn a_disabled_user_has_no_way_in_and_passkeys_survive_a_kill() {
    let (mut server, _) = start();
    let mut browser = ConsoleBrowser::new(&server);
    let mut passkey = Authenticator::new(&server);
    accept(&mut browser, &server, &mut passkey, ANN);
    server.cli(&["user", "disable", ANN]).unwrap();
    assert_refused(sign_in(&browser, &mut passkey));
    server.cli(&["user", "enable", ANN]).unwrap();
    server.kill().unwrap();
    server.run().unwrap();
    let browser = ConsoleBrowser::new(&server);
    // The port is another one, and the passkey is of the host.
    passkey.origin = Authenticator::new(&server).origin;
    assert_eq!(sign_in(&browser, &mut passkey).status, 204);
    // The counter was kept, too.
    passkey.counter -= 1;
    assert_refused(sign_in(&browser, &mut passkey));
}

#[test]
fn a_console_without_a_host_name_offers_no_passkeys() {
    let node = simulated_node("one", "");
    for (url, offered) in [
        ("https://192.0.2.1", false),
        ("http://wharf.example", false),
        ("https://wharf.example", true),
    ] {
        let ports = Ports::take().settings();
        let settings = format!("base_url = \"{url}\"\n{ports}{node}");
        let server = crate::serve(&settings);
        let browser = ConsoleBrowser::new(&server);
        let options = browser.get("/auth/options/").is(200);
        assert_eq!(options["passkey"], offered, "{url}");
        let status = if offered { 200 } else { 404 };
        assert_eq!(post(&browser, BEGIN, &Value::Null).status, status, "{url}");
    }
}

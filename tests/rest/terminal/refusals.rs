//! Refusals before the upgrade, and with the first message.

use super::{SshServer, open, refuses_callers_without_the_right, start};
use crate::{Expected, uuid};
use serde_json::{Value, json};
use wharf_tests::{Api, Terminal};

/// The status of a refused upgrade, which that of a plain request must equal.
fn refused(api: &Api, instance: &str, query: &str) -> (u16, Value) {
    let refused = Terminal::try_open(api, instance, query).unwrap();
    let refused = refused.err().expect("it must be refused");
    let plain = api.get(&format!("/api/instance/{instance}/terminal/{query}"));
    let plain = plain.unwrap();
    assert_eq!((plain.status, &plain.body), (refused.status, &refused.body));
    (refused.status, refused.body)
}

#[test]
fn a_terminal_is_refused_before_the_upgrade() {
    let (server, ann, instance) = start("");
    let id = uuid(&instance);
    refuses_callers_without_the_right(&server, id, refused);
    assert_eq!(refused(&ann, "no-such-name", "").0, 404);
    let (status, body) = refused(&ann, id, "?cols=0&rows=x");
    let field = json!(["must be an integer from 1 to 1000"]);
    assert_eq!(
        (status, body),
        (400, json!({ "cols": field, "rows": field }))
    );
    ann.act(id, "stop").is(200);
    let (status, body) = refused(&ann, id, "");
    let detail = "Cannot open a terminal of an instance that is exited; it must be running.";
    assert_eq!((status, body), (400, json!({ "detail": detail })));
    // Nothing was opened.
    let records = ann.get("/api/audit/").is(200).to_string();
    assert!(!records.contains("terminal.open"), "{records}");
    server.finish().unwrap();
}

#[test]
fn an_instance_that_cannot_be_signed_in_to_is_an_error_with_words() {
    let (server, api, instance) = start("");
    let id = uuid(&instance);
    let error = |expected: &str| {
        let mut terminal = Terminal::open(&api, id, "").unwrap();
        let (last, code) = terminal.end().unwrap();
        let error = last["error"].as_str().unwrap_or_default();
        assert!(error.contains(expected), "{last}");
        assert_eq!(code, Some(1011));
    };
    error("could not be reached");
    let changed = SshServer::start(&instance, "changed inside", 1).unwrap();
    error("Log in over SSH with your key");
    drop(changed);
    let other = SshServer::start(&instance, "other", 2).unwrap();
    error("another SSH host key");
    drop(other);
    let _right = SshServer::of(&instance).unwrap();
    drop(open(&api, &instance));
    server.finish().unwrap();
}

#[test]
fn an_open_terminal_has_an_audit_record_and_no_secret_is_logged() {
    let (server, api, instance) = start("");
    let _ssh = SshServer::of(&instance).unwrap();
    let mut terminal = open(&api, &instance);
    terminal
        .run("very-private", "you said very-private")
        .unwrap();
    let again = format!("?session={}", terminal.session);
    let mut again = Terminal::open(&api, uuid(&instance), &again).unwrap();
    again.run("size", "80 24").unwrap();
    let records = api.get("/api/audit/").is(200);
    let records: Vec<_> = records.as_array().unwrap().iter().collect();
    let opens: Vec<_> = records
        .iter()
        .filter(|record| record["operation"] == "terminal.open")
        .collect();
    let results: Vec<_> = opens.iter().map(|record| &record["result"]).collect();
    assert_eq!(results, [&json!("opened"), &json!("attached")]);
    let key = api.key().split('_').nth(1).unwrap();
    for record in opens {
        assert_eq!(record["actor"], format!("key:{key}"));
        assert_eq!(record["instance"], instance["uuid"]);
        assert_eq!(record["peer"], "127.0.0.1");
        assert!(record["request_id"].is_string());
    }
    let wrote = server.data_and_log().unwrap();
    let password = instance["original_service_password"].as_str().unwrap();
    for secret in [password, api.key(), "very-private", &terminal.session] {
        let found = wrote.windows(secret.len()).any(|w| w == secret.as_bytes());
        assert!(!found, "a secret is in the log or the data directory");
    }
    drop((terminal, again));
    server.finish().unwrap();
}

//! Refusals before the upgrade, and with the first message.

use super::{SshServer, is_refused_before_the_upgrade, keeps_secrets, open, plainly, start};
use crate::{recorded, uuid};
use serde_json::{Value, json};
use wharf_tests::{Api, Terminal};

/// The refusal of an upgrade, which a plain request gets too.
fn refused(api: &Api, instance: &str, query: &str) -> (u16, Value) {
    let refused = Terminal::try_open(api, instance, query).unwrap().err();
    let path = format!("/api/instance/{instance}/terminal/{query}");
    plainly(api, &path, refused.expect("it must be refused"))
}

#[test]
fn a_terminal_is_refused_before_the_upgrade() {
    let field = json!(["must be an integer from 1 to 1000"]);
    let error = json!({ "cols": field, "rows": field });
    let query = ("?cols=0&rows=x", error);
    is_refused_before_the_upgrade(&refused, query, "open a terminal of", "terminal.open");
}

#[test]
fn an_instance_that_cannot_be_signed_in_to_is_an_error_with_words() {
    let (_server, api, instance) = start("");
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
    let opens = recorded(&api, "terminal.open");
    let results: Vec<_> = opens.iter().map(|record| &record["result"]).collect();
    assert_eq!(results, [&json!("opened"), &json!("attached")]);
    let key = api.key().split('_').nth(1).unwrap();
    for record in &opens {
        assert_eq!(record["actor"], format!("key:{key}"));
        assert_eq!(record["instance"], instance["uuid"]);
        assert_eq!(record["peer"], "127.0.0.1");
        assert!(record["request_id"].is_string());
    }
    let more = ["very-private", &terminal.session];
    keeps_secrets(&server, &api, &instance, &more);
    drop((terminal, again));
}

//! The end of a terminal with its key, its instance, its SSH server or the service.

use super::shell::WAITS;
use super::{SshServer, open, start, start_on};
use crate::{Expected, time, until_true, uuid};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use wharf_tests::{Api, Server, Terminal, lasting_node, settled};

/// A terminal ends within this time. Requests in progress at a shutdown get 20 seconds.
const SOON: Duration = Duration::from_secs(15);

/// Waits for the end of a terminal, with these words and this code.
pub fn ends(terminal: &mut Terminal, words: &str, code: u16) {
    let begin = Instant::now();
    let (last, closed) = terminal.end().unwrap();
    let error = last["error"].as_str().unwrap_or_default();
    assert!(error.contains(words), "{last}");
    assert_eq!(closed, Some(code));
    assert!(begin.elapsed() < SOON, "{:?}", begin.elapsed());
}

fn key(server: &Server, api: &Api, body: &Value) -> (Api, String) {
    let key = api.send("POST", "/api/key/", body).is(201);
    let text = |field: &str| key[field].as_str().unwrap();
    (
        Api::new(server.base_url(), text("key")),
        text("id").to_owned(),
    )
}

#[test]
fn a_terminal_ends_with_its_key_even_if_its_client_reads_nothing() {
    let (server, api, instance) = start("");
    let ssh = SshServer::of(&instance).unwrap();
    let (other, id) = key(&server, &api, &json!({}));
    let mut revoked = open(&other, &instance);
    let mut deaf = open(&other, &instance);
    let mut kept = open(&api, &instance);
    deaf.send(b"flood 100000000\r").unwrap();
    let written = || ssh.written.load(Ordering::SeqCst);
    until_true("the flood begins", || written() > 1 << 20);
    settled(WAITS, Duration::from_secs(60), written);
    let path = format!("/api/key/{id}/");
    api.send("DELETE", &path, &Value::Null).is(204);
    ends(&mut revoked, "not valid any more", 1008);
    kept.run("size", "80 24").unwrap();
    let before = deaf.output.len();
    assert!(deaf.end().is_ok());
    assert!(
        deaf.output.len() - before < 64 << 20,
        "{}",
        deaf.output.len()
    );
    // Another key of the user does not attach.
    let session = format!("?session={}", kept.session);
    let (third, _) = key(&server, &api, &json!({}));
    let new = Terminal::open(&third, uuid(&instance), &session).unwrap();
    assert_ne!(new.session, kept.session);
    drop((kept, new));
}

#[test]
fn a_terminal_ends_with_the_expiry_of_its_key_its_connection_and_its_instance() {
    let (server, api, instance) = start("");
    let ssh = SshServer::of(&instance).unwrap();
    let (soon, _) = key(&server, &api, &json!({ "expires_at": time("2 seconds") }));
    ends(&mut open(&soon, &instance), "not valid any more", 1008);
    let mut terminal = open(&api, &instance);
    drop(ssh);
    ends(&mut terminal, "connection to the instance was lost", 1011);
    let _ssh = SshServer::of(&instance).unwrap();
    let mut terminal = open(&api, &instance);
    api.act(uuid(&instance), "stop").is(200);
    ends(&mut terminal, "not running", 4001);
    api.act(uuid(&instance), "restart").is(200);
    api.wait_for(uuid(&instance), "running").unwrap();
    let mut terminal = open(&api, &instance);
    api.delete(uuid(&instance)).is(204);
    ends(&mut terminal, "not running", 4001);
}

#[test]
fn terminals_end_at_shutdown_with_a_code_and_a_reason() {
    let (node, _dir) = lasting_node("one", "").unwrap();
    let (mut server, api, instance) = start_on(&node, "");
    let _ssh = SshServer::of(&instance).unwrap();
    let mut terminal = open(&api, &instance);
    let begin = Instant::now();
    let reader = std::thread::spawn(move || {
        ends(&mut terminal, "service stops", 1001);
    });
    assert!(server.terminate().unwrap().success());
    assert!(begin.elapsed() < SOON, "{:?}", begin.elapsed());
    reader.join().unwrap();
    server.run().unwrap();
    let api = server.again(&api);
    until_true("the instance runs", || {
        api.instance(uuid(&instance)).unwrap().body["state"] == "running"
    });
    drop(open(&api, &instance));
}

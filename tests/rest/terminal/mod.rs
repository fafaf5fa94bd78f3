//! Terminals, with an SSH server of the tests in place of the simulated instances.

mod bounds;
mod ends;
mod host_keys;
mod refusals;
mod sessions;
mod shell;
pub mod ssh_server;

use crate::{Expected, has, stores_none};
use serde_json::{Value, json};
pub use ssh_server::SshServer;
use wharf_tests::{Api, Refused, Server, Terminal, simulated_node};

/// Starts a server with these limits, and an instance that runs.
pub fn start(limits: &str) -> (Server, Api, Value) {
    start_on(&simulated_node("one", ""), limits)
}

/// Does what [`start`] does, on this node.
pub fn start_on(node: &str, limits: &str) -> (Server, Api, Value) {
    let (server, api) = crate::start_on(&format!("[limits]\n{limits}"), node);
    let running = crate::running(&api);
    (server, api, running)
}

/// Opens a terminal and waits for its prompt.
pub fn open(api: &Api, instance: &Value) -> Terminal {
    let mut terminal = Terminal::open(api, crate::uuid(instance), "").unwrap();
    terminal.wait_for_from(0, "ready> ").unwrap();
    terminal
}

/// A request for an upgrade that is refused: the status and the body.
type Upgrade = dyn Fn(&Api, &str, &str) -> (u16, Value);

/// Checks the refusals of an upgrade: by the right of the caller, by a query with its error, and by the state of the
/// instance. `to` is the action in the refusal. The audit log has no opening after them.
pub fn is_refused_before_the_upgrade(
    refused: &Upgrade,
    (query, error): (&str, Value),
    to: &str,
    operation: &str,
) {
    let (server, ann, instance) = start("");
    let id = crate::uuid(&instance);
    refuses_callers_without_the_right(&server, id, refused);
    assert_eq!(refused(&ann, "no-such-name", "").0, 404);
    assert_eq!(refused(&ann, id, query), (400, error));
    ann.act(id, "stop").is(200);
    let detail = format!("Cannot {to} an instance that is exited; it must be running.");
    assert_eq!(refused(&ann, id, ""), (400, json!({ "detail": detail })));
    let records = ann.get("/api/audit/").is(200).to_string();
    assert!(!records.contains(operation), "{records}");
}

/// Checks that a plain request gets the refusal of an upgrade too.
pub fn plainly(api: &Api, path: &str, refused: Refused) -> (u16, Value) {
    let plain = api.get(path).unwrap();
    // Without an upgrade, nothing is connected.
    if refused.status == 502 {
        assert_eq!(plain.status, 426);
    } else {
        assert_eq!((plain.status, &plain.body), (refused.status, &refused.body));
    }
    (refused.status, refused.body)
}

/// Checks that the password of an instance, the key and other secrets are neither in the log nor on the disk.
pub fn keeps_secrets(server: &Server, api: &Api, instance: &Value, more: &[&str]) {
    let password = instance["original_service_password"].as_str().unwrap();
    stores_none(server, &[&[password, api.key()], more].concat());
}

/// Checks the refusals of an upgrade by the caller's right: no key, a key without `write`, another user.
fn refuses_callers_without_the_right(server: &Server, id: &str, refused: &Upgrade) {
    let anyone = Api::new(server.base_url(), "wharf_0000000000000000_x");
    assert_eq!(refused(&anyone, id, "").0, 401);
    let reader = server.cli(&["key", "new", "ann@example.com", "--scope", "read"]);
    let reader = Api::new(server.base_url(), reader.unwrap().trim());
    let (status, body) = refused(&reader, id, "");
    assert_eq!(status, 403);
    has(&body["detail"], "`write`");
    let bob = server.user("bob@example.com").unwrap();
    assert_eq!(refused(&bob, id, "").0, 404);
}

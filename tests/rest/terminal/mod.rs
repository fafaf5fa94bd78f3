//! Terminals, with an SSH server of the tests in place of the simulated instances.

mod bounds;
mod ends;
mod host_keys;
mod refusals;
mod sessions;
mod shell;
pub mod ssh_server;

use crate::has;
use serde_json::Value;
pub use ssh_server::SshServer;
use wharf_tests::{Api, Ports, Server, Terminal, simulated_node};

/// Starts a server with these limits, and an instance that runs.
pub fn start(limits: &str) -> (Server, Api, Value) {
    start_on(&simulated_node("one", ""), limits)
}

/// Does what [`start`] does, on this node.
pub fn start_on(node: &str, limits: &str) -> (Server, Api, Value) {
    let ports = Ports::take().settings();
    let server = Server::start(&format!("[limits]\n{limits}{ports}{node}")).unwrap();
    let api = server.user("ann@example.com").unwrap();
    let created = api.small_container().unwrap();
    let running = api.wait_for(crate::uuid(&created), "running").unwrap();
    (server, api, running)
}

/// Opens a terminal and waits for its prompt.
pub fn open(api: &Api, instance: &Value) -> Terminal {
    let mut terminal = Terminal::open(api, crate::uuid(instance), "").unwrap();
    terminal.wait_for_from(0, "ready> ").unwrap();
    terminal
}

/// Checks the refusals of an upgrade by the caller's right: no key, a key without `write`, another user.
pub fn refuses_callers_without_the_right(
    server: &Server,
    id: &str,
    refused: impl Fn(&Api, &str, &str) -> (u16, Value),
) {
    let anyone = Api::new(server.base_url(), "wharf_0000000000000000_x");
    assert_eq!(refused(&anyone, id, "").0, 401);
    let reader = server.cli(&["key", "new", "ann@example.com", "--scope", "read"]);
    let reader = Api::new(server.base_url(), reader.unwrap().trim());
    let (status, body) = refused(&reader, id, "");
    assert_eq!(status, 403);
    has(body["detail"].as_str().unwrap(), "`write`");
    let bob = server.user("bob@example.com").unwrap();
    assert_eq!(refused(&bob, id, "").0, 404);
}

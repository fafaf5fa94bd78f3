//! Terminals, with an SSH server of the tests in place of the simulated instances.

mod bounds;
mod ends;
mod host_keys;
mod refusals;
mod sessions;
mod shell;
pub mod ssh_server;

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

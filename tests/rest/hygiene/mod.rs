//! HTTP itself, against what careless and hostile clients send: never a hang, never a 5xx, never
//! one request taken for two, and memory that stays bounded.

mod connections;
mod framing;
mod http2;
mod shutout;
mod slow;
mod wire;

pub use wire::send;

use wharf_tests::{Api, Ports, Server, simulated_node};

/// A server that waits for nobody for long.
fn impatient() -> (Server, Api) {
    let limits = "[limits]\nheader_timeout_ms = 500\nbody_timeout_ms = 500\n";
    let node = simulated_node("one", "");
    let server = Server::start(&format!("{}{limits}{node}", Ports::take().settings())).unwrap();
    let api = server.user("ann@example.com").unwrap();
    (server, api)
}

//! HTTP against careless and hostile clients: no hang, no 5xx, no request smuggling, and bounded
//! memory.

mod connections;
mod framing;
mod http2;
mod shutout;
mod slow;
mod wire;

pub use wire::{resident_kib, send};

use wharf_tests::{Api, Ports, Server, simulated_node};

/// Starts a server with short timeouts.
fn start_with_short_timeouts() -> (Server, Api) {
    let limits = "[limits]\nheader_timeout_ms = 500\nbody_timeout_ms = 500\n";
    let node = simulated_node("one", "");
    let server = Server::start(&format!("{}{limits}{node}", Ports::take().settings())).unwrap();
    let api = server.user("ann@example.com").unwrap();
    (server, api)
}

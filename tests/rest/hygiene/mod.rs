//! HTTP against careless and hostile clients: no hang, no 5xx, no request smuggling, and bounded
//! memory.

mod connections;
mod framing;
mod http2;
mod memory;
mod shutout;
mod slow;
mod wire;

pub use wire::{listen, resident_kib, send};

use crate::start_under;
use wharf_tests::{Api, Server};

/// Starts a server with short timeouts.
fn start_with_short_timeouts() -> (Server, Api) {
    let limits =
        "[limits]\nheader_timeout_ms = 500\nidle_timeout_ms = 500\nbody_timeout_ms = 500\n";
    let (server, api) = start_under(limits, "");
    (server, api)
}

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

//! The gateway before real servers, by bytes on sockets: each check of a request, both ways of a body, WebSockets,
//! and the end of each connection with its right.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod bodies;
mod client;
mod ends;
mod entrance;
mod heads;
mod house;
mod http2;
mod neighbours;
mod page;
mod sockets;
mod upstreams;

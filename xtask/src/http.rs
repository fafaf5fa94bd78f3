//! A small blocking HTTP client for a unix socket or a loopback port: the engine and Wharf itself.

mod client;
mod endpoint;
mod message;

pub use client::Client;
pub use endpoint::Endpoint;
pub use message::{Body, Request, Response};

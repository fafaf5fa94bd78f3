//! A blocking HTTP client for a unix socket or a loopback port: for engines and for Wharf.

mod client;
mod endpoint;
mod message;

pub use client::HttpClient;
pub use endpoint::Endpoint;
pub use message::{Body, Request, Response};

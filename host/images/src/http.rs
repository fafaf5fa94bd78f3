//! A blocking HTTP client for a unix socket or a loopback port: for engines and for Wharf. It is made of reqwest,
//! and not the client of `wharf_engine`, because its callers are programs without a runtime that stream files.

mod client;
mod endpoint;
mod message;

pub use client::HttpClient;
pub(crate) use client::block_on;
pub use endpoint::Endpoint;
pub use message::{Body, Quiet, Request, Response};

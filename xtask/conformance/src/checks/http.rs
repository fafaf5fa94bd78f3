//! Malformed HTTP requests, on every endpoint.

use super::auth::instance_endpoints;
use super::keys::other_endpoints;
use crate::check::{Check, decision};
use crate::client::{INSTANCES, Response};
use crate::context::Context;
use anyhow::{Result, ensure};
use serde_json::Value;

const HOST: &str = "Host: wharf.example.org\r\n";
const JSON: &str = "Content-Type: application/json\r\n";

pub(super) fn checks() -> Vec<Check> {
    vec![
        decision(
            "4",
            "a request without a Host header is refused with 400 on every endpoint",
            |c| {
                on_every_endpoint(c, |method, path| {
                    c.me().send_malformed(method, path, "", "")
                })
            },
        ),
        decision(
            "4",
            "a request with two Host headers is refused with 400 on every endpoint",
            |c| {
                let two = format!("{HOST}Host: other.example.org\r\n");
                on_every_endpoint(c, |method, path| {
                    c.me().send_malformed(method, path, &two, "")
                })
            },
        ),
        decision(
            "4",
            "a malformed chunked body is refused with 400 on every endpoint",
            |c| {
                let headers = format!("{HOST}{JSON}Transfer-Encoding: chunked\r\n");
                on_every_endpoint(c, |method, path| {
                    c.me()
                        .send_malformed(method, path, &headers, "zz\r\n{}\r\n0\r\n\r\n")
                })
            },
        ),
        decision(
            "4",
            "a body with Content-Length and chunks is refused with 400, without request smuggling",
            |c| {
                let both =
                    format!("{HOST}{JSON}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n");
                let hidden = "0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
                // `send_malformed` fails if a second response follows.
                c.me()
                    .send_malformed("POST", INSTANCES, &both, hidden)?
                    .is(400)
            },
        ),
    ]
}

/// Sends a request to every endpoint. The instance is missing, so an accepted request has no effect.
fn on_every_endpoint(c: &Context<'_>, send: impl Fn(&str, &str) -> Result<Response>) -> Result<()> {
    let mut endpoints = instance_endpoints(&c.name());
    endpoints.extend(other_endpoints(c));
    endpoints.extend(["/healthz", "/readyz"].map(|path| ("GET", path.to_owned(), Value::Null)));
    for (method, path, _) in endpoints {
        let response = send(method, &path)?;
        response.is(400)?;
        ensure!(!response.detail()?.is_empty(), "{response}");
    }
    Ok(())
}

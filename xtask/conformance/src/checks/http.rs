//! Requests that are broken as HTTP: every endpoint says so as it says everything else.

use super::auth::endpoints_of;
use crate::check::{Check, decision};
use crate::client::{Answer, INSTANCES};
use crate::context::Context;
use anyhow::{Result, ensure};
use serde_json::Value;

const HOST: &str = "Host: wharf.example.org\r\n";
const JSON: &str = "Content-Type: application/json\r\n";

pub(super) fn checks() -> Vec<Check> {
    vec![
        decision(
            "4",
            "a request without a Host header is 400, on every endpoint",
            |c| everywhere(c, |method, path| c.me().bare(method, path, "", "")),
        ),
        decision(
            "4",
            "a request with two Host headers is 400, on every endpoint",
            |c| {
                let two = format!("{HOST}Host: other.example.org\r\n");
                everywhere(c, |method, path| c.me().bare(method, path, &two, ""))
            },
        ),
        decision(
            "4",
            "a body whose chunks are broken is 400, on every endpoint",
            |c| {
                let headers = format!("{HOST}{JSON}Transfer-Encoding: chunked\r\n");
                everywhere(c, |method, path| {
                    c.me().bare(method, path, &headers, "zz\r\n{}\r\n0\r\n\r\n")
                })
            },
        ),
        decision(
            "4",
            "a body with a length and chunks is 400, and no second request",
            |c| {
                let both =
                    format!("{HOST}{JSON}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n");
                let hidden = "0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
                // That it is one answer is looked at for every such request.
                c.me().bare("POST", INSTANCES, &both, hidden)?.is(400)
            },
        ),
    ]
}

/// Asks on every endpoint; of what does not exist, so that nothing happens if it is not noticed.
fn everywhere(c: &Context<'_>, ask: impl Fn(&str, &str) -> Result<Answer>) -> Result<()> {
    let mut endpoints = endpoints_of(&c.name());
    for (method, path) in [
        ("GET", INSTANCES),
        ("POST", INSTANCES),
        ("GET", "/healthz"),
        ("GET", "/readyz"),
    ] {
        endpoints.push((method, path.to_owned(), Value::Null));
    }
    for (method, path, _) in endpoints {
        let answer = ask(method, &path)?;
        answer.is(400)?;
        ensure!(!answer.detail()?.is_empty(), "{answer}");
    }
    Ok(())
}

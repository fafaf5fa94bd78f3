//! Section 7: an error without a field has `detail` and nothing else.

use crate::check::{Check, decision};
use crate::client::{INSTANCES, Response, action_path, instance_path};
use crate::context::{Context, uuid};
use anyhow::{Result, ensure};

/// Sends a request that results in the status.
type Send = fn(&Context<'_>) -> Result<Response>;

/// Status, cause, and a request that provokes it.
const ERRORS: [(u16, &str, Send); 9] = [
    (401, "a missing key", |c| c.anonymous().get(INSTANCES)),
    (404, "an unknown path", |c| c.me().get("/api/nothing/")),
    (404, "an unknown instance", |c| c.me().instance(&c.name())),
    (404, "an unknown action", |c| {
        c.me().act(uuid(c.sample("container")?)?, "fly")
    }),
    (405, "an unsupported method", |c| {
        c.me().raw("PUT", INSTANCES, &[], None)
    }),
    (308, "a missing slash", |c| c.me().get("/api/instance")),
    (413, "an oversized body", |c| {
        body(c, "application/json", 64 * 1024 + 1)
    }),
    (415, "an unsupported content type", |c| {
        body(c, "text/plain", 2)
    }),
    (400, "an action in the wrong state", |c| {
        c.me().act(uuid(c.sample("container")?)?, "restart")
    }),
];

pub(super) fn checks() -> Vec<Check> {
    let check = |(status, cause, send): (u16, &'static str, Send)| {
        let name = format!("{cause} results in {status} with `detail` only");
        decision("7", name, move |c| {
            let response = send(c)?;
            response.is(status)?;
            ensure!(
                !response.detail()?.is_empty(),
                "`detail` is empty: {response}"
            );
            let fields = response.body.as_object().map_or(0, serde_json::Map::len);
            ensure!(fields == 1, "the body has more than `detail`: {response}");
            Ok(())
        })
    };
    let mut checks: Vec<Check> = ERRORS.into_iter().map(check).collect();
    checks.push(decision(
        "7",
        "the body of a 404 depends on neither action nor path",
        |c| {
            let (a, b) = (c.name(), c.name());
            let first = c.me().instance(&a)?;
            for other in [
                c.me().instance(&b)?,
                c.me().get(&action_path(&b, "stats"))?,
                c.me().act(&b, "stop")?,
                c.me().raw("DELETE", &instance_path(&b), &[], None)?,
            ] {
                ensure!(first.body == other.body, "{first}; {other}");
            }
            Ok(())
        },
    ));
    checks
}

fn body(c: &Context<'_>, content_type: &str, length: usize) -> Result<Response> {
    let headers = [("Content-Type", content_type)];
    c.me()
        .raw("POST", INSTANCES, &headers, Some(&vec![b' '; length]))
}

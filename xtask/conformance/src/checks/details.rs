//! Section 7: what is no error of fields says why under `detail`, and says nothing else.

use crate::check::{Check, decision};
use crate::client::{Answer, INSTANCES, below, instance};
use crate::context::{Context, uuid};
use anyhow::{Result, ensure};

/// Asks for one answer of the status.
type Ask = fn(&Context<'_>) -> Result<Answer>;

/// Status, what is asked, and how.
const ASKED: [(u16, &str, Ask); 9] = [
    (401, "a missing key", |c| c.anyone().get(INSTANCES)),
    (404, "an unknown path", |c| c.me().get("/api/nothing/")),
    (404, "an unknown instance", |c| c.me().instance(&c.name())),
    (404, "an unknown action", |c| {
        c.me().act(uuid(c.sample("container")?)?, "fly")
    }),
    (405, "another method", |c| {
        c.me().raw("PUT", INSTANCES, &[], None)
    }),
    (308, "a missing slash", |c| c.me().get("/api/instance")),
    (413, "a large body", |c| {
        body(c, "application/json", 64 * 1024 + 1)
    }),
    (415, "another content type", |c| body(c, "text/plain", 2)),
    (400, "a state that does not allow it", |c| {
        c.me().act(uuid(c.sample("container")?)?, "restart")
    }),
];

pub(super) fn checks() -> Vec<Check> {
    let check = |(status, what, ask): (u16, &'static str, Ask)| {
        let name = format!("{what} is {status} with a text under `detail`, and nothing else");
        decision("7", name, move |c| {
            let answer = ask(c)?;
            answer.is(status)?;
            ensure!(!answer.detail()?.is_empty(), "an empty `detail`: {answer}");
            let fields = answer.body.as_object().map_or(0, serde_json::Map::len);
            ensure!(fields == 1, "there is more than `detail`: {answer}");
            Ok(())
        })
    };
    let mut checks: Vec<Check> = ASKED.into_iter().map(check).collect();
    checks.push(decision(
        "7",
        "a 404 is the same for every action and says nothing of the path",
        |c| {
            let (a, b) = (c.name(), c.name());
            let first = c.me().instance(&a)?;
            for other in [
                c.me().instance(&b)?,
                c.me().get(&below(&b, "stats"))?,
                c.me().act(&b, "stop")?,
                c.me().raw("DELETE", &instance(&b), &[], None)?,
            ] {
                ensure!(first.body == other.body, "{first}; {other}");
            }
            Ok(())
        },
    ));
    checks
}

fn body(c: &Context<'_>, content_type: &str, length: usize) -> Result<Answer> {
    let headers = [("Content-Type", content_type)];
    c.me()
        .raw("POST", INSTANCES, &headers, Some(&vec![b' '; length]))
}

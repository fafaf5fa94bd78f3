//! Section 4.6.

use crate::conformance::check::{Check, decision, spec};
use crate::conformance::context::{same, uuid};
use crate::conformance::redact::redacted;
use anyhow::ensure;
use serde_json::json;

pub(super) fn checks() -> Vec<Check> {
    let mut checks = vec![
        spec(
            "4.6",
            "the restart result has message, uuid and state, which is running",
            |c| {
                let stopped = c.stopped("container")?;
                let result = c.me().act(uuid(&stopped)?, "restart")?.expect(200)?;
                ensure!(result["message"].is_string(), "no `message`: {result}");
                same(&result, "uuid", &stopped["uuid"])?;
                same(&result, "state", &json!("running"))
            },
        ),
        spec("4.6", "restart of what does not exist is 404", |c| {
            c.me().act(&c.name(), "restart")?.is(404)
        }),
        decision("4.6", "a restart while the stop still runs is legal", |c| {
            let running = c.running("container")?;
            let id = uuid(&running)?;
            for _ in 0..2 {
                c.me().act(id, "stop")?.is(200)?;
                c.me().act(id, "restart")?.is(200)?;
                c.wait(id, "running")?;
            }
            Ok(())
        }),
    ];
    for kind in ["container", "vm"] {
        checks.push(decision(
            "4.6",
            format!("a {kind} keeps its password, ports, addresses and rates"),
            move |c| {
                let before = c.running(kind)?;
                let id = uuid(&before)?;
                c.me().act(id, "stop")?.is(200)?;
                c.me().act(id, "restart")?.is(200)?;
                let after = c.wait(id, "running")?;
                ensure!(
                    before == after,
                    "{} and {}",
                    redacted(&before),
                    redacted(&after)
                );
                Ok(())
            },
        ));
    }
    checks
}

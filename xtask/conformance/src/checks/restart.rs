//! Section 4.6.

use crate::check::{Check, decision, skip, spec};
use crate::context::{Context, same, uuid};
use crate::redact::redacted;
use anyhow::{Result, anyhow, ensure};
use serde_json::json;
use std::time::Duration;

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
        decision(
            "4.6",
            "a restart while the stop still runs is legal, and starts the instance after it",
            during_stop,
        ),
        decision(
            "4.6",
            "a restart right after the stop, again and again",
            |c| {
                let running = c.running("container")?;
                let id = uuid(&running)?;
                for _ in 0..2 {
                    c.me().act(id, "stop")?.is(200)?;
                    c.me().act(id, "restart")?.is(200)?;
                    c.wait(id, "running")?;
                }
                Ok(())
            },
        ),
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

/// The stop shows at once; its answer comes when the host has carried it out.
fn during_stop(c: &Context<'_>) -> Result<()> {
    let named = json!({ "name": c.slow_name(), "n_vcpus": 2 });
    let running = c.running_with(&c.small_with("container", &named))?;
    let id = uuid(&running)?;
    std::thread::scope(|scope| {
        let stop = scope.spawn(|| c.me().act(id, "stop"));
        while c.me().instance(id)?.expect(200)?["state"] != "exited" && !stop.is_finished() {
            std::thread::sleep(Duration::from_millis(10));
        }
        let early = !stop.is_finished();
        let restarted = c.me().act(id, "restart")?.expect(200)?;
        same(&restarted, "state", &json!("running"))?;
        let stopped = stop.join().map_err(|_| anyhow!("a thread broke"))??;
        same(&stopped.expect(200)?, "state", &json!("shut_off"))?;
        let after = c.wait(id, "running")?;
        ensure!(
            after == running,
            "{} and {}",
            redacted(&running),
            redacted(&after)
        );
        // It runs in truth, not in words only.
        c.me().stats(id)?.is(200)?;
        if early {
            Ok(())
        } else {
            skip("the stop was over before it could be asked")
        }
    })
}

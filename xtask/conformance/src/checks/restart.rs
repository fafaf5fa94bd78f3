//! Section 4.6: restart.

use crate::check::{Check, decision, skip, spec};
use crate::client::action_path;
use crate::context::{Context, expect_field, uuid};
use crate::redact::redacted;
use anyhow::{Result, anyhow, ensure};
use serde_json::json;

pub(super) fn checks() -> Vec<Check> {
    let mut checks = vec![
        spec(
            "4.6",
            "the result of restart has message, uuid and the state running",
            |c| {
                let stopped = c.stopped("container")?;
                let result = c.me().act(uuid(&stopped)?, "restart")?.expect(200)?;
                ensure!(
                    result["message"].is_string(),
                    "`message` is missing: {result}"
                );
                expect_field(&result, "uuid", &stopped["uuid"])?;
                expect_field(&result, "state", &json!("running"))
            },
        ),
        spec("4.6", "restart returns 404 for a missing instance", |c| {
            c.me().act(&c.name(), "restart")?.is(404)
        }),
        decision(
            "4.6",
            "recreate is refused for an instance that was not lost, and 404 for a missing one",
            |c| {
                let running = c.running("container")?;
                let path = action_path(uuid(&running)?, "recreate");
                for body in [json!({}), json!({ "backup": "newest" })] {
                    c.me().post(&path, &body)?.is(400)?;
                }
                c.me()
                    .post(&path, &json!({ "backup": 1 }))?
                    .refuses("backup")?;
                c.me().get(&path)?.is(400)?;
                c.me().act(uuid(&running)?, "recreate")?.is(400)?;
                c.me().act(&c.name(), "recreate")?.is(404)
            },
        ),
        decision(
            "4.6",
            "a restart during a stop succeeds, and the instance runs after the stop",
            during_stop,
        ),
        decision(
            "4.6",
            "a restart right after a stop succeeds repeatedly",
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
            format!("stop and restart leave every field of a {kind} unchanged"),
            move |c| {
                let before = c.running(kind)?;
                let id = uuid(&before)?;
                c.me().act(id, "stop")?.is(200)?;
                c.me().act(id, "restart")?.is(200)?;
                let after = c.wait(id, "running")?;
                ensure!(
                    before == after,
                    "before: {}; after: {}",
                    redacted(&before),
                    redacted(&after)
                );
                Ok(())
            },
        ));
    }
    checks
}

/// The state changes at once, and the response to stop waits for the node.
fn during_stop(c: &Context<'_>) -> Result<()> {
    let fields = json!({ "name": c.slow_name(), "n_vcpus": 2 });
    let running = c.running_with(&c.small_with("container", &fields))?;
    let id = uuid(&running)?;
    std::thread::scope(|scope| {
        let stop = scope.spawn(|| c.me().act(id, "stop"));
        c.retry(|| {
            let now = c.me().instance(id)?.expect(200)?;
            Ok(now["state"] == "exited" || stop.is_finished())
        })?;
        let overlapped = !stop.is_finished();
        let restarted = c.me().act(id, "restart")?.expect(200)?;
        expect_field(&restarted, "state", &json!("running"))?;
        let stopped = stop.join().map_err(|_| anyhow!("a thread panicked"))??;
        expect_field(&stopped.expect(200)?, "state", &json!("shut_off"))?;
        let after = c.wait(id, "running")?;
        ensure!(
            after == running,
            "before: {}; after: {}",
            redacted(&running),
            redacted(&after)
        );
        // `stats` reads from the node.
        c.me().stats(id)?.is(200)?;
        if overlapped {
            Ok(())
        } else {
            skip("the stop ended before the restart")
        }
    })
}

//! Failures of nodes and instances, which the operator prepares.

use crate::check::{Check, decision, spec};
use crate::context::{Context, expect_field, uuid};
use anyhow::{Result, ensure};
use serde_json::{Value, json};

pub(super) fn checks() -> Vec<Check> {
    vec![
        decision("3", "an instance in state error can be renamed and deleted, but not stopped, restarted or resized", |c| {
            let created = failed_instance(c)?;
            let id = uuid(&created)?;
            for refused in [
                c.me().act(id, "stop")?,
                c.me().act(id, "restart")?,
                c.me().patch(id, &json!({ "n_vcpus": 2 }))?,
                c.me().stats(id)?,
            ] {
                refused.is(400)?;
                ensure!(refused.detail()?.contains("error"), "{refused}");
            }
            let name = c.name();
            c.me().patch(id, &json!({ "name": name }))?.is(200)?;
            c.me().delete(id)?.is(204)?;
            c.me().instance(id)?.is(404)
        })
        .exclusive(),
        spec("4.10", "stats returns 502 while the node cannot be reached", |c| {
            let name = c.staged(|s| &s.unreachable_name, "--unreachable-name")?;
            let created = c.running_with(&c.small_with("container", &json!({ "name": name })))?;
            let response = c.me().stats(uuid(&created)?)?;
            response.is(502)
        })
        .exclusive(),
        decision("4.4", "a resize returns 502 and changes nothing while the node cannot be reached", |c| {
            let name = c.staged(|s| &s.unreachable_name, "--unreachable-name")?;
            let before = c.running_with(&c.small_with("container", &json!({ "name": name })))?;
            let id = uuid(&before)?;
            let larger = json!({ "n_vcpus": 2, "name": c.name() });
            let response = c.me().patch(id, &larger)?;
            response.is(502)?;
            ensure!(!response.detail()?.is_empty(), "{response}");
            let after = c.me().instance(id)?.expect(200)?;
            ensure!(after == before, "the instance changed despite the failure");
            Ok(())
        })
        .exclusive(),
        decision("4.6", "restart returns 502 if the node cannot start the instance, which stays stopped", |c| {
            let name = c.staged(|s| &s.unstartable_name, "--unstartable-name")?;
            let running = c.running_with(&c.small_with("container", &json!({ "name": name })))?;
            let id = uuid(&running)?;
            c.me().act(id, "stop")?.is(200)?;
            let response = c.me().act(id, "restart")?;
            response.is(502)?;
            ensure!(!response.detail()?.is_empty(), "{response}");
            let after = c.me().instance(id)?.expect(200)?;
            expect_field(&after, "state", &json!("exited"))
        }),
        decision("3", "an instance that ends by itself becomes exited and can be restarted", |c| {
            let name = c.staged(|s| &s.dying_name, "--dying-name")?;
            let created = c.running_with(&c.small_with("container", &json!({ "name": name })))?;
            let exited = c.wait(uuid(&created)?, "exited")?;
            ensure!(exited["uuid"] == created["uuid"]);
            c.me().act(uuid(&created)?, "restart")?.is(200)?;
            c.wait(uuid(&created)?, "running").map(drop)
        }),
    ]
}

fn failed_instance(c: &Context<'_>) -> Result<Value> {
    let name = c.staged(|s| &s.failing_name, "--failing-name")?;
    let created = c.create(&c.small_with("container", &json!({ "name": name })))?;
    c.wait(uuid(&created)?, "error")
}

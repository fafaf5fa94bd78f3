//! Failures behind the interface, which the operator prepares.

use crate::check::{Check, decision, spec};
use crate::context::{Context, same, uuid};
use anyhow::{Result, ensure};
use serde_json::{Value, json};

pub(super) fn checks() -> Vec<Check> {
    vec![
        decision("3", "an instance that cannot be provisioned becomes error, and is neither stopped nor restarted nor resized", |c| {
            let created = failed(c)?;
            let id = uuid(&created)?;
            for action in ["stop", "restart"] {
                c.me().act(id, action)?.is(400)?;
            }
            c.me().patch(id, &json!({ "n_vcpus": 2 }))?.is(400)?;
            c.me().stats(id)?.is(400)?;
            let name = c.name();
            c.me().patch(id, &json!({ "name": name }))?.is(200)?;
            c.me().delete(id)?.is(204)?;
            c.me().instance(id)?.is(404)
        })
        .alone(),
        spec("4.10", "stats answers 502 when the host cannot be reached", |c| {
            let name = c.staged(|s| &s.unreachable_name, "--unreachable-name")?;
            let created = c.running_with(&c.small_with("container", &json!({ "name": name })))?;
            let answer = c.me().stats(uuid(&created)?)?;
            answer.is(502)
        })
        .alone(),
        decision("4.4", "update answers 502 when the host cannot be reached, and nothing changes", |c| {
            let name = c.staged(|s| &s.unreachable_name, "--unreachable-name")?;
            let before = c.running_with(&c.small_with("container", &json!({ "name": name })))?;
            let id = uuid(&before)?;
            let larger = json!({ "n_vcpus": 2, "name": c.name() });
            let answer = c.me().patch(id, &larger)?;
            answer.is(502)?;
            ensure!(!answer.detail()?.is_empty(), "{answer}");
            let after = c.me().instance(id)?.expect(200)?;
            ensure!(after == before, "and yet it changed");
            Ok(())
        })
        .alone(),
        decision("4.6", "restart answers 502 when the host cannot start the instance, which stays stopped", |c| {
            let name = c.staged(|s| &s.unstartable_name, "--unstartable-name")?;
            let running = c.running_with(&c.small_with("container", &json!({ "name": name })))?;
            let id = uuid(&running)?;
            c.me().act(id, "stop")?.is(200)?;
            let answer = c.me().act(id, "restart")?;
            answer.is(502)?;
            ensure!(!answer.detail()?.is_empty(), "{answer}");
            let after = c.me().instance(id)?.expect(200)?;
            same(&after, "state", &json!("exited"))
        }),
        decision("3", "an instance that ends by itself is seen to have, and can be restarted", |c| {
            let name = c.staged(|s| &s.dying_name, "--dying-name")?;
            let created = c.running_with(&c.small_with("container", &json!({ "name": name })))?;
            let exited = c.wait(uuid(&created)?, "exited")?;
            ensure!(exited["uuid"] == created["uuid"]);
            c.me().act(uuid(&created)?, "restart")?.is(200)
        }),
    ]
}

fn failed(c: &Context<'_>) -> Result<Value> {
    let name = c.staged(|s| &s.failing_name, "--failing-name")?;
    let created = c.create(&c.small_with("container", &json!({ "name": name })))?;
    c.wait(uuid(&created)?, "error")
}

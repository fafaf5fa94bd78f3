//! Section 3: every transition that exists, and the ones that do not.

use crate::check::{Check, decision, skip, spec};
use crate::context::{Context, same, stopped_state, uuid};
use anyhow::{Result, ensure};
use serde_json::{Value, json};

pub(super) fn checks() -> Vec<Check> {
    let mut checks = Vec::new();
    for kind in ["container", "vm"] {
        let shown = stopped_state(kind);
        checks.extend([
            spec(
                "3",
                format!("none → provisioning: create of a {kind}"),
                move |c| {
                    c.sample(kind)?;
                    same(&c.create(&c.small(kind))?, "state", &json!("provisioning"))
                },
            ),
            spec(
                "3",
                format!("provisioning → running: a {kind}, by itself"),
                move |c| c.running(kind).map(drop),
            ),
            spec(
                "3",
                format!("running → shut_off: stop of a {kind} says so"),
                move |c| {
                    let running = c.running(kind)?;
                    let result = c.me().act(uuid(&running)?, "stop")?.expect(200)?;
                    same(&result, "state", &json!("shut_off"))
                },
            ),
            spec("3", format!("a stopped {kind} is {shown}"), move |c| {
                c.stopped(kind).map(drop)
            }),
            spec(
                "3",
                format!("{shown} → running: restart of a {kind} says so"),
                move |c| {
                    let stopped = c.stopped(kind)?;
                    let result = c.me().act(uuid(&stopped)?, "restart")?.expect(200)?;
                    same(&result, "state", &json!("running"))?;
                    c.wait(uuid(&stopped)?, "running").map(drop)
                },
            ),
            spec(
                "3",
                format!("{shown} → running → {shown} → running: a {kind}, again and again"),
                move |c| {
                    let stopped = c.stopped(kind)?;
                    let id = uuid(&stopped)?;
                    for _ in 0..2 {
                        c.me().act(id, "restart")?.is(200)?;
                        c.wait(id, "running")?;
                        c.me().act(id, "stop")?.is(200)?;
                        c.wait(id, shown)?;
                    }
                    Ok(())
                },
            ),
            spec(
                "4.5",
                format!("stop of a {kind} that is provisioning is 400"),
                move |c| while_provisioning(c, kind, "stop"),
            ),
            spec(
                "4.6",
                format!("restart of a {kind} that is provisioning is 400"),
                move |c| while_provisioning(c, kind, "restart"),
            ),
            spec(
                "4.5",
                format!("stop of a {kind} that is {shown} is 400"),
                move |c| refused(c, &c.stopped(kind)?, "stop"),
            ),
            spec(
                "4.6",
                format!("restart of a {kind} that is running is 400"),
                move |c| refused(c, c.sample(kind)?, "restart"),
            ),
        ]);
        for state in ["provisioning", "running", shown] {
            let name = format!("{state} → deleted: delete of a {kind}");
            checks.push(spec("3", name, move |c| {
                c.sample(kind)?;
                let instance = match state {
                    "provisioning" => c.create(&c.small(kind))?,
                    "running" => c.running(kind)?,
                    _ => c.stopped(kind)?,
                };
                c.me().delete(uuid(&instance)?)?.is(204)?;
                c.me().instance(uuid(&instance)?)?.is(404)
            }));
        }
    }
    for action in ["stop", "restart"] {
        checks.push(decision(
            "3",
            format!("the refusal of a {action} names the state"),
            move |c| {
                let (instance, state) = match action {
                    "stop" => (c.stopped("container")?, "exited"),
                    _ => (c.sample("container")?.clone(), "running"),
                };
                let answer = c.me().act(uuid(&instance)?, action)?;
                answer.is(400)?;
                ensure!(answer.detail()?.contains(state), "{answer}");
                Ok(())
            },
        ));
    }
    checks
}

/// It may become running just before it is asked.
fn while_provisioning(c: &Context<'_>, kind: &str, action: &str) -> Result<()> {
    c.sample(kind)?;
    let created = c.create(&c.small(kind))?;
    let answer = c.me().act(uuid(&created)?, action)?;
    let now = c.me().instance(uuid(&created)?)?.expect(200)?;
    if answer.status == 200 && now["state"] != "provisioning" {
        return skip("it was running before it could be asked");
    }
    answer.is(400)
}

fn refused(c: &Context<'_>, instance: &Value, action: &str) -> Result<()> {
    let before = c.me().instance(uuid(instance)?)?.expect(200)?;
    c.me().act(uuid(instance)?, action)?.is(400)?;
    let after = c.me().instance(uuid(instance)?)?.expect(200)?;
    ensure!(before == after, "and yet it changed");
    Ok(())
}

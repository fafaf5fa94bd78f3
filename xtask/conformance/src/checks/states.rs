//! Section 3: the transitions between states, and the refusal of all others.

use crate::check::{Check, decision, spec};
use crate::context::{Context, expect_field, stopped_state, uuid};
use anyhow::{Result, ensure};
use serde_json::{Value, json};

pub(super) fn checks() -> Vec<Check> {
    let mut checks = Vec::new();
    for kind in ["container", "vm"] {
        let stopped = stopped_state(kind);
        checks.extend([
            spec(
                "3",
                format!("none → provisioning: create of a {kind}"),
                move |c| {
                    c.sample(kind)?;
                    expect_field(&c.create(&c.small(kind))?, "state", &json!("provisioning"))
                },
            ),
            spec(
                "3",
                format!("provisioning → running: a {kind}, without a request"),
                move |c| c.running(kind).map(drop),
            ),
            spec(
                "3",
                format!("running → shut_off: the result of stop on a {kind}"),
                move |c| {
                    let running = c.running(kind)?;
                    let result = c.me().act(uuid(&running)?, "stop")?.expect(200)?;
                    expect_field(&result, "state", &json!("shut_off"))
                },
            ),
            spec(
                "3",
                format!("a stopped {kind} has the state {stopped}"),
                move |c| c.stopped(kind).map(drop),
            ),
            spec(
                "3",
                format!("{stopped} → running: the result of restart on a {kind}"),
                move |c| {
                    let instance = c.stopped(kind)?;
                    let result = c.me().act(uuid(&instance)?, "restart")?.expect(200)?;
                    expect_field(&result, "state", &json!("running"))?;
                    c.wait(uuid(&instance)?, "running").map(drop)
                },
            ),
            spec(
                "3",
                format!("{stopped} → running → {stopped}: repeated restarts and stops of a {kind}"),
                move |c| {
                    let instance = c.stopped(kind)?;
                    let id = uuid(&instance)?;
                    for _ in 0..2 {
                        c.me().act(id, "restart")?.is(200)?;
                        c.wait(id, "running")?;
                        c.me().act(id, "stop")?.is(200)?;
                        c.wait(id, stopped)?;
                    }
                    Ok(())
                },
            ),
            spec(
                "4.5",
                format!("stop returns 400 for a provisioning {kind}"),
                move |c| refused_during_provisioning(c, kind, "stop"),
            ),
            spec(
                "4.6",
                format!("restart returns 400 for a provisioning {kind}"),
                move |c| refused_during_provisioning(c, kind, "restart"),
            ),
            spec(
                "4.5",
                format!("stop returns 400 for a {kind} in state {stopped}"),
                move |c| expect_refused(c, &c.stopped(kind)?, "stop"),
            ),
            spec(
                "4.6",
                format!("restart returns 400 for a running {kind}"),
                move |c| expect_refused(c, c.sample(kind)?, "restart"),
            ),
        ]);
        for state in ["provisioning", "running", stopped] {
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
    for (action, state) in [
        ("stop", "provisioning"),
        ("stop", "exited"),
        ("restart", "provisioning"),
        ("restart", "running"),
        ("stats", "exited"),
    ] {
        let name = format!("the refusal of {action} names the state {state}");
        checks.push(decision("3", name, move |c| {
            let send = |id: &str| match action {
                "stats" => c.me().stats(id),
                _ => c.me().act(id, action),
            };
            let response = match state {
                "provisioning" => c.during_provisioning("container", send)?.1,
                "running" => send(uuid(c.sample("container")?)?)?,
                _ => send(uuid(&c.stopped("container")?)?)?,
            };
            response.is(400)?;
            ensure!(response.detail()?.contains(state), "{response}");
            Ok(())
        }));
    }
    checks
}

fn refused_during_provisioning(c: &Context<'_>, kind: &str, action: &str) -> Result<()> {
    let (_, response) = c.during_provisioning(kind, |id| c.me().act(id, action))?;
    response.is(400)
}

fn expect_refused(c: &Context<'_>, instance: &Value, action: &str) -> Result<()> {
    let before = c.me().instance(uuid(instance)?)?.expect(200)?;
    c.me().act(uuid(instance)?, action)?.is(400)?;
    let after = c.me().instance(uuid(instance)?)?.expect(200)?;
    ensure!(before == after, "the instance changed despite the refusal");
    Ok(())
}

//! The ranges of the node's user ids, which Incus may give twice.

use super::context::IncusContext;
use crate::lab::{Lab, text, uuid};
use anyhow::{Result, ensure};
use serde_json::Value;
use std::thread;

/// Enough creations at one moment that Incus gives a range twice in most runs.
const MANY: usize = 6;

/// Instances that are created at one moment have ranges of their own.
pub fn of_creations_at_once(context: &IncusContext) -> Result<()> {
    let server = context.server(&[1])?;
    let api = server.user("ann@example.com")?;
    let created = thread::scope(|scope| {
        let one = || scope.spawn(|| api.small_container());
        let threads: Vec<_> = (0..MANY).map(|_| one()).collect();
        let ended = threads.into_iter().map(|thread| thread.join());
        ended
            .map(|created| created.unwrap_or_else(|_| anyhow::bail!("a thread panicked")))
            .collect::<Result<Vec<_>>>()
    })?;
    for instance in &created {
        api.wait_for(uuid(instance), "running")?;
    }
    for instance in &created {
        are_own(context, instance)?;
    }
    let again = server.log().matches("got the range of ids").count();
    println!("the engine chose again {again} times for {MANY} instances");
    for instance in &created {
        context.remove(&api, instance)?;
    }
    server.finish()
}

/// No other running instance of the member has the range of this one.
pub fn are_own(context: &IncusContext, instance: &Value) -> Result<()> {
    let own = context.raw_object(instance)?;
    let base = |one: &Value| text(&one["config"]["volatile.idmap.base"]).to_owned();
    let all = context.ask("GET", "/1.0/instances?project=wharf&recursion=1", None)?;
    for other in all.as_array().into_iter().flatten() {
        let is_beside = other["status"] == "Running"
            && other["location"] == own["location"]
            && other["name"] != own["name"];
        ensure!(
            !is_beside || base(other) != base(&own),
            "{} and {} are {}",
            own["name"],
            other["name"],
            base(&own)
        );
    }
    Ok(())
}

//! Restarts of the engine, on a private engine: the other tests share theirs.

use crate::context::EngineContext;
use crate::lab::{Lab, after_observations, running, runs_since, since, state, uuid};
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::process::Command;
use std::time::Instant;
use wharf_tests::lanes::BoxedTest;
use wharf_tests::until;

/// An interval long enough for the engine to restart between two observations.
const SELDOM: &str = "[limits]\nobserve_every_ms = 6000\n";

/// A test of the second engine.
pub fn on_another(test: fn(&mut EngineContext) -> Result<()>) -> BoxedTest<EngineContext> {
    Box::new(move |context| {
        let start = || context.another("second").map(Box::new);
        context.second().with(start, |second| test(second))
    })
}

pub fn instances_survive(engine: &mut EngineContext) -> Result<()> {
    let (server, api) = engine.served(SELDOM)?;
    let (kept, lost, off) = (running(&api)?, running(&api)?, running(&api)?);
    api.act(uuid(&off), "stop")?.expect(200)?;
    let began = since(&kept)?;

    // Only the engine restarts. Instances keep running, and the interface shows them as running.
    // Their published ports may be closed meanwhile.
    engine.restart(|| {
        ensure!(state(&api, &kept)? == "running");
        Ok(())
    })?;
    after_observations(&server, 1)?;
    runs_since(&kept, &began)?;

    // The engine restarts between two observations, and an instance ends with it. Wharf starts that
    // one again, because it did not end by itself.
    let pid = engine.container_pid(&lost)?;
    after_observations(&server, 0)?;
    let begin = Instant::now();
    engine.restart(|| end(&pid))?;
    println!("the engine was gone for {:.1?}", begin.elapsed());
    until("the lost instance runs again", || {
        Ok(engine.object(&lost).is_ok_and(|one| one.runs).then_some(()))
    })?;
    until("the login to it works", || Ok(since(&lost).ok()))?;
    runs_since(&kept, &began)?;
    for (instance, wanted) in [(&kept, "running"), (&lost, "running"), (&off, "exited")] {
        let now = state(&api, instance)?;
        ensure!(now == wanted, "{now} instead of {wanted}");
    }
    ensure!(
        server.log().contains("contact with the engine was lost")
            || server.log().contains("node is out of reach"),
        "{}",
        server.log()
    );

    // An instance that ends without the engine has ended by itself.
    let pid = engine.container_pid(&lost)?;
    after_observations(&server, 0)?;
    end(&pid)?;
    api.wait_for(uuid(&lost), "exited")?;
    for instance in [&kept, &lost, &off] {
        engine.remove(&api, instance)?;
    }
    server.finish()
}

/// The node boots, and its engine starts before its data disk is mounted.
pub fn on_an_empty_store(engine: &mut EngineContext) -> Result<()> {
    let (server, api) = engine.served("")?;
    let (first, second) = (running(&api)?, running(&api)?);
    let pids = [
        engine.container_pid(&first)?,
        engine.container_pid(&second)?,
    ];
    let (own, hidden) = (engine.store(), engine.store().with_extension("hidden"));
    let listed = |words: &str| {
        until(&format!("the node is listed with: {words}"), || {
            let list = server.cli(&["node", "list"])?;
            Ok(list.contains(words).then_some(()))
        })
    };
    let mut waiting = Value::Null;
    engine.restart(|| {
        pids.iter().try_for_each(|pid| end(pid))?;
        std::fs::rename(&own, &hidden)?;
        // The other store has no images, so a creation would be refused once Wharf knows it.
        waiting = api.small_container()?;
        Ok(())
    })?;
    listed("outage: ")?;
    after_observations(&server, 2)?;
    for (instance, wanted) in [
        (&first, "running"),
        (&second, "running"),
        (&waiting, "provisioning"),
    ] {
        let now = state(&api, instance)?;
        ensure!(now == wanted, "{now} instead of {wanted}");
        ensure!(engine.objects(instance)?.is_empty());
    }
    engine.restart(|| {
        std::fs::rename(&own, own.with_extension("other"))?;
        Ok(std::fs::rename(&hidden, &own)?)
    })?;
    listed("reachable")?;
    for instance in [&first, &second] {
        until("the login works again", || Ok(since(instance).ok()))?;
        ensure!(state(&api, instance)? == "running");
    }
    api.wait_for(uuid(&waiting), "running")?;
    for instance in [&first, &second, &waiting] {
        engine.remove(&api, instance)?;
    }
    server.finish()
}

pub fn end(pid: &str) -> Result<()> {
    let status = Command::new("kill").args(["-9", pid]).status()?;
    ensure!(status.success(), "kill -9 {pid}");
    Ok(())
}

impl EngineContext {
    /// Returns the process id on the node of an instance's first process.
    pub fn container_pid(&self, instance: &Value) -> Result<String> {
        let path = format!("/containers/wharf-{}/json", uuid(instance));
        let pid = self.ask("GET", &path, None)?["State"]["Pid"].as_u64();
        Ok(pid.filter(|pid| *pid > 1).context("no pid")?.to_string())
    }
}

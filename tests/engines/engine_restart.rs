//! Restarts of the engine, on a private engine: the other tests share theirs.

use crate::context::Context;
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::process::Command;
use std::time::{Duration, Instant};
use wharf_tests::{Api, Login, Ports, Server, until};

/// An interval long enough for the engine to restart between two observations.
const SELDOM: &str = "[limits]\nobserve_every_ms = 6000\n";

fn uuid(instance: &Value) -> &str {
    instance["uuid"].as_str().unwrap_or_default()
}

fn running(api: &Api) -> Result<Value> {
    let created = api.small_container()?;
    api.wait_for(uuid(&created), "running")
}

fn uptime(instance: &Value) -> Result<String> {
    let password = instance["original_service_password"]
        .as_str()
        .unwrap_or_default();
    Login::Password(password).output(instance, "stat -c %Y /proc/1")
}

fn reachable_since(instance: &Value, began: &str) -> Result<()> {
    let now = until("the login works", || Ok(uptime(instance).ok()))?;
    ensure!(now == began, "the instance was restarted");
    Ok(())
}

pub fn instances_survive(context: &Context) -> Result<()> {
    let mut engine = context.another("restart")?;
    let outcome = restarts(&mut engine);
    let stopped = engine.stop();
    outcome.and(stopped)
}

fn restarts(engine: &mut Context) -> Result<()> {
    let server = Server::start(&engine.settings(Ports::take(), SELDOM)?)?;
    let api = server.user("ann@example.com")?;
    let (kept, lost, off) = (running(&api)?, running(&api)?, running(&api)?);
    api.act(uuid(&off), "stop")?.expect(200)?;
    let began = uptime(&kept)?;

    // Only the engine restarts. Instances keep running, and the interface shows them as running.
    // Their published ports may be closed meanwhile.
    engine.restart(|| {
        ensure!(api.instance(uuid(&kept))?.expect(200)?["state"] == "running");
        Ok(())
    })?;
    after_an_observation(&server)?;
    reachable_since(&kept, &began)?;

    // The engine restarts between two observations, and an instance ends with it. Wharf starts that
    // one again, because it did not end by itself.
    let pid = engine.container_pid(&lost)?;
    after_an_observation(&server)?;
    let begin = Instant::now();
    engine.restart(|| end(&pid))?;
    println!("the engine was gone for {:.1?}", begin.elapsed());
    until("the lost instance runs again", || {
        Ok(engine
            .container_of(&lost)
            .is_ok_and(|c| c["State"] == "running")
            .then_some(()))
    })?;
    until("the login to it works", || Ok(uptime(&lost).ok()))?;
    reachable_since(&kept, &began)?;
    for (instance, state) in [(&kept, "running"), (&lost, "running"), (&off, "exited")] {
        let now = api.instance(uuid(instance))?.expect(200)?["state"].clone();
        ensure!(now == state, "{now} instead of {state}");
    }
    ensure!(
        server.log().contains("contact with the engine was lost")
            || server.log().contains("node is out of reach"),
        "{}",
        server.log()
    );

    // An instance that ends without the engine has ended by itself.
    let pid = engine.container_pid(&lost)?;
    after_an_observation(&server)?;
    end(&pid)?;
    api.wait_for(uuid(&lost), "exited")?;
    for instance in [&kept, &lost, &off] {
        api.delete(uuid(instance))?.expect(204)?;
    }
    until("all are gone", || {
        let mut left = 0;
        for instance in [&kept, &lost, &off] {
            left += engine.containers_of(instance)?.len();
        }
        Ok((left == 0).then_some(()))
    })?;
    server.finish()
}

/// The node boots, and its engine starts before its data disk is mounted.
pub fn on_an_empty_store(context: &Context) -> Result<()> {
    let mut engine = context.another("store")?;
    let outcome = starts_empty(&mut engine);
    let stopped = engine.stop();
    outcome.and(stopped)
}

fn starts_empty(engine: &mut Context) -> Result<()> {
    let server = Server::start(&engine.settings(Ports::take(), "")?)?;
    let api = server.user("ann@example.com")?;
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
    engine.restart(|| {
        pids.iter().try_for_each(|pid| end(pid))?;
        Ok(std::fs::rename(&own, &hidden)?)
    })?;
    listed("outage: ")?;
    let waiting = api.small_container()?;
    after_an_observation(&server)?;
    after_an_observation(&server)?;
    for (instance, state) in [
        (&first, "running"),
        (&second, "running"),
        (&waiting, "provisioning"),
    ] {
        let now = api.instance(uuid(instance))?.expect(200)?["state"].clone();
        ensure!(now == state, "{now} instead of {state}");
        ensure!(engine.containers_of(instance)?.is_empty());
    }
    engine.restart(|| {
        std::fs::rename(&own, own.with_extension("other"))?;
        Ok(std::fs::rename(&hidden, &own)?)
    })?;
    listed("reachable")?;
    for instance in [&first, &second] {
        until("the login works again", || Ok(uptime(instance).ok()))?;
        ensure!(api.instance(uuid(instance))?.expect(200)?["state"] == "running");
    }
    api.wait_for(uuid(&waiting), "running")?;
    for instance in [&first, &second, &waiting] {
        api.delete(uuid(instance))?.expect(204)?;
        until("the container is gone", || {
            Ok(engine.containers_of(instance)?.is_empty().then_some(()))
        })?;
    }
    server.finish()
}

/// Waits for the next observation of the node.
fn after_an_observation(server: &Server) -> Result<()> {
    // Other list requests have additional filters.
    let is_observation = |line: &&str| {
        line.contains("path=\"/containers/json")
            && line.contains("io.wharf.installation")
            && !line.contains("io.wharf.instance")
            && !line.contains("io.wharf.network")
    };
    let looks = || server.log().lines().filter(is_observation).count();
    let before = looks();
    until("another observation of the node", || {
        Ok((looks() > before).then_some(()))
    })?;
    std::thread::sleep(Duration::from_millis(300));
    Ok(())
}

fn end(pid: &str) -> Result<()> {
    let status = Command::new("kill").args(["-9", pid]).status()?;
    ensure!(status.success(), "kill -9 {pid}");
    Ok(())
}

impl Context {
    /// Returns the process id on the node of an instance's first process.
    fn container_pid(&self, instance: &Value) -> Result<String> {
        let path = format!("/containers/wharf-{}/json", uuid(instance));
        let pid = self.by_hand("GET", &path, None)?["State"]["Pid"].as_u64();
        Ok(pid.filter(|pid| *pid > 1).context("no pid")?.to_string())
    }
}

//! The engine ended and started again. On an engine of its own: the other tests share theirs.

use crate::context::Context;
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::process::Command;
use std::time::{Duration, Instant};
use wharf_tests::{Api, Login, Ports, Server, until};

/// So seldom that the engine is gone and back between two looks.
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
    let now = until("it can be logged in to", || Ok(uptime(instance).ok()))?;
    ensure!(now == began, "it was started again");
    Ok(())
}

pub fn nothing_is_taken_for_dead(context: &Context) -> Result<()> {
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

    // The engine alone: instances go on through it, and so does the interface. Their published
    // ports may be closed until it is back.
    engine.restart(|| {
        ensure!(api.instance(uuid(&kept))?.expect(200)?["state"] == "running");
        Ok(())
    })?;
    after_a_look(&server)?;
    reachable_since(&kept, &began)?;

    // The engine and an instance with it, back before anyone looks: it is started again, because
    // it did not end by itself.
    let pid = engine.container_pid(&lost)?;
    after_a_look(&server)?;
    let begin = Instant::now();
    engine.restart(|| end(&pid))?;
    println!("the engine was gone for {:.1?}", begin.elapsed());
    until("the lost one runs again", || {
        Ok(engine
            .container_of(&lost)
            .is_ok_and(|c| c["State"] == "running")
            .then_some(()))
    })?;
    until("and can be logged in to", || Ok(uptime(&lost).ok()))?;
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

    // One that ends while the engine stays has ended by itself.
    let pid = engine.container_pid(&lost)?;
    after_a_look(&server)?;
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

/// Returns right after the node was looked at once more.
fn after_a_look(server: &Server) -> Result<()> {
    // Other lists ask for more than the installation.
    let is_look = |line: &&str| {
        line.contains("path=\"/containers/json")
            && line.contains("io.wharf.installation")
            && !line.contains("io.wharf.instance")
            && !line.contains("io.wharf.network")
    };
    let looks = || server.log().lines().filter(is_look).count();
    let before = looks();
    until("another look at the node", || {
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
    /// The node's process id of an instance's first process.
    fn container_pid(&self, instance: &Value) -> Result<String> {
        let path = format!("/containers/wharf-{}/json", uuid(instance));
        let pid = self.by_hand("GET", &path, None)?["State"]["Pid"].as_u64();
        Ok(pid.filter(|pid| *pid > 1).context("no pid")?.to_string())
    }
}

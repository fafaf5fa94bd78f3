//! Wharf killed with SIGKILL during its work, and restarted.

use crate::{Api, Server};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Five points of a kill, as fractions of a step's undisturbed duration.
pub const FIVE: [f64; 5] = [0.02, 0.25, 0.5, 0.75, 1.0];
/// Fields that must never change.
const KEPT: [&str; 5] = [
    "name",
    "lan_ipv4",
    "wan_ssh_port",
    "original_service_password",
    "created_at",
];

/// Where the kills are.
pub struct Plan<'a> {
    /// The points in provisioning, restart and deletion.
    pub points: &'a [f64],
    /// Whether there are kills in the stop too.
    pub in_stop: bool,
    /// Whether each restart grows the disk first.
    pub grows: bool,
    /// From creations to their deletions, each with a kill, in milliseconds.
    pub early_deletions: &'a [u64],
}

/// The engine, which must agree with the interface.
pub trait KilledEngine {
    /// Checks that the engine has one object of an instance, and that it runs or not.
    fn has(&self, instance: &Value, runs: bool) -> Result<()>;
    /// Waits until the engine has no object of an instance.
    fn gone(&self, instance: &Value) -> Result<()>;
}

/// A server that is killed repeatedly, and its user.
struct Victim<'a, E> {
    engine: &'a E,
    server: &'a mut Server,
    api: Api,
    plan: Plan<'a>,
    /// All instances that were ever created.
    made: Vec<Value>,
}

/// Kills the server at the points of the plan. In the end, no instance is left.
pub fn converge(
    server: &mut Server,
    api: Api,
    engine: &impl KilledEngine,
    plan: Plan<'_>,
) -> Result<()> {
    let points = plan.points;
    let early = plan.early_deletions;
    let mut victim = Victim {
        engine,
        server,
        api,
        plan,
        made: Vec::new(),
    };
    let [provisioning, stop, restart, deletion] = victim.durations()?;
    for point in points {
        let part = |whole: Duration| whole.mul_f64(*point);
        let during = |step: &str| format!("killed at {point} of {step}");
        let instance = victim
            .provisioning(part(provisioning))
            .with_context(|| during("provisioning"))?;
        victim
            .stop(&instance, part(stop))
            .with_context(|| during("the stop"))?;
        victim
            .restart(&instance, part(restart))
            .with_context(|| during("the restart"))?;
        victim
            .deletion(&instance, part(deletion))
            .with_context(|| during("the deletion"))?;
    }
    println!(
        "kills at {points:?}; undisturbed: provisioning {provisioning:.0?}, stop {stop:.0?}, restart \
         {restart:.0?}, deletion {deletion:.0?}"
    );
    for after in early.iter().copied().map(Duration::from_millis) {
        let created = victim.create()?;
        std::thread::sleep(after);
        victim.deletion(&created, Duration::ZERO)?;
    }
    ensure!(victim.api.list()?.is_empty());
    // A container that was still being created when Wharf looked is found as an orphan.
    victim.made.iter().try_for_each(|made| engine.gone(made))
}

fn uuid(instance: &Value) -> &str {
    instance["uuid"].as_str().unwrap_or_default()
}

impl<E: KilledEngine> Victim<'_, E> {
    fn create(&mut self) -> Result<Value> {
        let created = self.api.small_container()?;
        self.made.push(created.clone());
        Ok(created)
    }

    /// The undisturbed durations of provisioning, stop, restart and deletion.
    fn durations(&mut self) -> Result<[Duration; 4]> {
        let begin = Instant::now();
        let created = self.create()?;
        let id = uuid(&created);
        let timed = |step: &dyn Fn() -> Result<()>| -> Result<Duration> {
            let begin = Instant::now();
            step()?;
            Ok(begin.elapsed())
        };
        self.api.wait_for(id, "running")?;
        let provisioning = begin.elapsed();
        let stop = timed(&|| self.api.act(id, "stop")?.expect(200).map(drop))?;
        let restart = timed(&|| self.api.act(id, "restart")?.expect(200).map(drop))?;
        self.api.wait_for(id, "running")?;
        let deletion = timed(&|| {
            self.api.delete(id)?.expect(204)?;
            self.engine.gone(&created)
        })?;
        Ok([provisioning, stop, restart, deletion])
    }

    fn kill_and_start(&mut self) -> Result<()> {
        self.server.kill()?;
        self.server.run()?;
        self.api = self.server.again(&self.api);
        Ok(())
    }

    fn state(&self, instance: &Value) -> Result<String> {
        let body = self.api.instance(uuid(instance))?.expect(200)?;
        Ok(body["state"].as_str().unwrap_or_default().to_owned())
    }

    fn provisioning(&mut self, after: Duration) -> Result<Value> {
        let created = self.create()?;
        std::thread::sleep(after);
        let seen = self.state(&created)?;
        self.kill_and_start()?;
        let now = self.state(&created)?;
        ensure!(
            seen != "running" || now == "running",
            "the instance was running, but is {now} after the kill"
        );
        let running = self.api.wait_for(uuid(&created), "running")?;
        kept(&created, &running)?;
        self.engine.has(&running, true)?;
        Ok(running)
    }

    fn stop(&mut self, instance: &Value, after: Duration) -> Result<()> {
        if !self.plan.in_stop {
            return self.api.act(uuid(instance), "stop")?.expect(200).map(drop);
        }
        let acknowledged = self.act_and_kill(instance, "stop", "exited", after)?;
        let now = self.state(instance)?;
        ensure!(
            !acknowledged || now == "exited",
            "the stop was acknowledged, but the instance is {now}"
        );
        if now == "running" {
            // The request did not arrive before the kill.
            self.api.act(uuid(instance), "stop")?.expect(200)?;
        }
        kept(instance, &self.api.wait_for(uuid(instance), "exited")?)?;
        self.engine.has(instance, false)
    }

    fn restart(&mut self, instance: &Value, after: Duration) -> Result<()> {
        if self.plan.grows {
            let path = format!("/api/instance/{}/", uuid(instance));
            let larger = json!({ "disk_size_gib": 11 });
            self.api.send("PATCH", &path, &larger)?.expect(200)?;
        }
        let acknowledged = self.act_and_kill(instance, "restart", "running", after)?;
        let now = self.state(instance)?;
        ensure!(
            !acknowledged || now == "running",
            "the restart was acknowledged, but the instance is {now}"
        );
        if now == "exited" {
            // The restart may have been durable, and may complete before this one.
            let again = self.api.act(uuid(instance), "restart")?;
            if self.state(instance)? != "running" {
                again.expect(200)?;
            }
        }
        let running = self.api.wait_for(uuid(instance), "running")?;
        kept(instance, &running)?;
        self.engine.has(instance, true)
    }

    fn deletion(&mut self, instance: &Value, after: Duration) -> Result<()> {
        self.api.delete(uuid(instance))?.expect(204)?;
        std::thread::sleep(after);
        self.kill_and_start()?;
        ensure!(self.api.instance(uuid(instance))?.status == 404);
        self.engine.gone(instance)
    }

    /// Sends an action, and kills the server after a delay. Returns whether the action was answered,
    /// or its effect was visible, by then.
    fn act_and_kill(
        &mut self,
        instance: &Value,
        action: &'static str,
        wanted: &str,
        after: Duration,
    ) -> Result<bool> {
        let (api, id) = (self.api.clone(), uuid(instance).to_owned());
        let request =
            std::thread::spawn(move || api.act(&id, action).is_ok_and(|a| a.status == 200));
        std::thread::sleep(after);
        let shown = self.state(instance)? == wanted;
        let answered = request.is_finished();
        self.server.kill()?;
        let answer = request.join().unwrap_or(false);
        self.kill_and_start()?;
        Ok(shown || (answered && answer))
    }
}

fn kept(before: &Value, now: &Value) -> Result<()> {
    for field in KEPT {
        ensure!(
            before[field] == now[field],
            "{field} changed: {before} {now}"
        );
    }
    Ok(())
}

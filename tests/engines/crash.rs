//! Wharf killed with SIGKILL during its work, and restarted.

use crate::context::Context;
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use wharf_tests::{Api, Login, Server, until};

/// The points of a kill, as fractions of a step's undisturbed duration.
const POINTS: [f64; 5] = [0.02, 0.25, 0.5, 0.75, 1.0];
/// Fields that must never change.
const KEPT: [&str; 5] = [
    "name",
    "lan_ipv4",
    "wan_ssh_port",
    "original_service_password",
    "created_at",
];

/// The undisturbed duration of each step.
struct Durations {
    provisioning: Duration,
    stop: Duration,
    restart: Duration,
    deletion: Duration,
}

/// A server that is killed repeatedly, and its user.
struct Victim<'a> {
    context: &'a Context,
    server: Server,
    api: Api,
    /// All instances that were ever created.
    made: Vec<Value>,
    /// The networks of those instances.
    networks: BTreeSet<String>,
}

/// Twenty kills: five points in each of provisioning, stop, restart and deletion.
pub fn at_twenty_points(context: &Context) -> Result<()> {
    let server = context.server()?;
    let api = server.user("ann@example.com")?;
    let mut victim = Victim {
        context,
        server,
        api,
        made: Vec::new(),
        networks: BTreeSet::new(),
    };
    let own = victim.durations()?;
    let mut slowest = Duration::ZERO;
    for point in POINTS {
        let part = |whole: Duration| whole.mul_f64(point);
        let during = |step: &str| format!("killed at {point} of {step}");
        let (instance, a) = victim
            .provisioning(part(own.provisioning))
            .with_context(|| during("provisioning"))?;
        let b = victim
            .stop(&instance, part(own.stop))
            .with_context(|| during("the stop"))?;
        let c = victim
            .restart(&instance, part(own.restart))
            .with_context(|| during("the restart"))?;
        let d = victim
            .deletion(&instance, part(own.deletion))
            .with_context(|| during("the deletion"))?;
        slowest = [slowest, a, b, c, d].into_iter().max().unwrap_or_default();
    }
    println!(
        "20 kills; undisturbed: provisioning {:.0?}, stop {:.0?}, restart {:.0?}, deletion {:.0?}; \
         from the kill to the requested state, including the server's start: at most {slowest:.0?}",
        own.provisioning, own.stop, own.restart, own.deletion
    );
    // Deletions during the creation.
    for after_ms in [0, 60, 150] {
        let created = victim.create()?;
        std::thread::sleep(Duration::from_millis(after_ms));
        victim.deletion(&created, Duration::ZERO)?;
    }
    ensure!(victim.api.list()?.is_empty());
    victim.nothing_is_left()?;
    victim.server.finish()
}

fn uuid(instance: &Value) -> &str {
    instance["uuid"].as_str().unwrap_or_default()
}

fn login_works(instance: &Value) -> Result<()> {
    let password = instance["original_service_password"]
        .as_str()
        .unwrap_or_default();
    ensure!(Login::Password(password).output(instance, "id -un")? == "user");
    Ok(())
}

impl Victim<'_> {
    fn create(&mut self) -> Result<Value> {
        let created = self.api.small_container()?;
        self.made.push(created.clone());
        Ok(created)
    }

    fn durations(&mut self) -> Result<Durations> {
        let timed = |step: &dyn Fn() -> Result<()>| -> Result<Duration> {
            let begin = Instant::now();
            step()?;
            Ok(begin.elapsed())
        };
        let created = self.create()?;
        let id = uuid(&created);
        let provisioning = timed(&|| self.api.wait_for(id, "running").map(drop))?;
        let stop = timed(&|| self.api.act(id, "stop")?.expect(200).map(drop))?;
        let restart = timed(&|| self.api.act(id, "restart")?.expect(200).map(drop))?;
        self.api.wait_for(id, "running")?;
        let deletion = timed(&|| {
            self.api.delete(id)?.expect(204)?;
            self.gone(&created)
        })?;
        Ok(Durations {
            provisioning,
            stop,
            restart,
            deletion,
        })
    }

    fn kill_and_start(&mut self) -> Result<Instant> {
        self.server.kill()?;
        let killed = Instant::now();
        self.server.run()?;
        self.api = self.server.again(&self.api);
        Ok(killed)
    }

    fn provisioning(&mut self, after: Duration) -> Result<(Value, Duration)> {
        let created = self.create()?;
        std::thread::sleep(after);
        let seen = self.state(&created)?;
        let killed = self.kill_and_start()?;
        let now = self.state(&created)?;
        ensure!(
            seen != "running" || now == "running",
            "the instance was running, but is {now} after the kill"
        );
        let running = self.api.wait_for(uuid(&created), "running")?;
        let took = killed.elapsed();
        self.kept(&created, &running)?;
        self.engine_lists("running", &running)?;
        login_works(&running)?;
        for container in self.context.containers_of(&running)? {
            let networks = container["NetworkSettings"]["Networks"].as_object();
            self.networks
                .extend(networks.into_iter().flat_map(|n| n.keys().cloned()));
        }
        Ok((running, took))
    }

    fn stop(&mut self, instance: &Value, after: Duration) -> Result<Duration> {
        let acknowledged = self.act_and_kill(instance, "stop", after)?;
        let killed = self.kill_and_start()?;
        let now = self.state(instance)?;
        ensure!(
            !acknowledged || now == "exited",
            "the stop was acknowledged, but the instance is {now}"
        );
        if now == "running" {
            // The request did not arrive before the kill.
            self.api.act(uuid(instance), "stop")?.expect(200)?;
        }
        let exited = self.api.wait_for(uuid(instance), "exited")?;
        self.kept(instance, &exited)?;
        self.engine_lists("exited", instance)?;
        Ok(killed.elapsed())
    }

    fn restart(&mut self, instance: &Value, after: Duration) -> Result<Duration> {
        let acknowledged = self.act_and_kill(instance, "restart", after)?;
        let killed = self.kill_and_start()?;
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
        self.kept(instance, &running)?;
        until("the login works", || Ok(login_works(&running).ok()))?;
        let took = killed.elapsed();
        self.engine_lists("running", instance)?;
        Ok(took)
    }

    fn deletion(&mut self, instance: &Value, after: Duration) -> Result<Duration> {
        self.api.delete(uuid(instance))?.expect(204)?;
        std::thread::sleep(after);
        let killed = self.kill_and_start()?;
        ensure!(self.api.instance(uuid(instance))?.status == 404);
        self.gone(instance)?;
        Ok(killed.elapsed())
    }

    /// Sends an action and kills the server after a delay. Returns whether the action was answered,
    /// or its effect was visible, by then.
    fn act_and_kill(&mut self, instance: &Value, action: &str, after: Duration) -> Result<bool> {
        let (api, id, action) = (
            self.api.clone(),
            uuid(instance).to_owned(),
            action.to_owned(),
        );
        let wanted = if action == "stop" {
            "exited"
        } else {
            "running"
        };
        let request =
            std::thread::spawn(move || api.act(&id, &action).is_ok_and(|a| a.status == 200));
        std::thread::sleep(after);
        let shown = self.state(instance)? == wanted;
        let answered = request.is_finished();
        self.server.kill()?;
        let answer = request.join().unwrap_or(false);
        Ok(shown || (answered && answer))
    }

    fn state(&self, instance: &Value) -> Result<String> {
        let body = self.api.instance(uuid(instance))?.expect(200)?;
        Ok(body["state"].as_str().unwrap_or_default().to_owned())
    }

    fn kept(&self, before: &Value, now: &Value) -> Result<()> {
        for field in KEPT {
            ensure!(
                before[field] == now[field],
                "{field} changed: {before} {now}"
            );
        }
        Ok(())
    }

    /// Waits until the engine lists exactly one container, in this state. A busy dockerd updates
    /// its list later than a login.
    fn engine_lists(&self, state: &str, instance: &Value) -> Result<()> {
        until(
            &format!("the engine lists a container that is {state}"),
            || {
                let containers = self.context.containers_of(instance)?;
                ensure!(containers.len() == 1, "{containers:?}");
                Ok(containers
                    .iter()
                    .all(|one| one["State"] == state)
                    .then_some(()))
            },
        )
    }

    fn gone(&self, instance: &Value) -> Result<()> {
        until("the engine has no object of the instance", || {
            Ok(self
                .context
                .containers_of(instance)?
                .is_empty()
                .then_some(()))
        })
    }

    /// Checks that no instance and no network is left.
    fn nothing_is_left(&self) -> Result<()> {
        ensure!(!self.networks.is_empty());
        until("the owner's network is gone", || {
            let there = self.context.networks()?;
            Ok(there
                .iter()
                .all(|n| !self.networks.contains(n))
                .then_some(()))
        })?;
        // A container that was still being created when Wharf looked is found as an orphan.
        self.made
            .iter()
            .try_for_each(|instance| self.gone(instance))
    }
}

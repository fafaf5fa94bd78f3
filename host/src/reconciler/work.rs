//! Works on one instance until its node follows its row.

mod grow;
mod resize;

use super::apply::Apply;
use super::plan::{Step, plan};
use super::reach;
use super::spec;
use super::workers::Workers;
use crate::app::{App, now};
use crate::db::{Detail, Read};
use crate::domain::blueprint::Health;
use crate::domain::driver::{Phase, PluginError, Report, Target};
use crate::domain::error::Error;
use crate::domain::event::What;
use crate::domain::ids::{Generation, InstanceId};
use crate::domain::instance::{Instance, ResourceType};
use crate::domain::shortage::of_restart;
use crate::domain::time::Timestamp;
use crate::plugin::NodeDriver;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Pauses after failures grow from the first to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LAST_PAUSE: Duration = Duration::from_secs(5);
/// How long reachability is tried before the driver is asked again.
const REACH: Duration = Duration::from_secs(2);
/// An engine may still carry out a create whose answer was lost: only a second look, this much
/// later, proves that it did not.
const SECOND_LOOK: Duration = Duration::from_secs(5);
/// An instance that ends this often right after its start will not stay up.
const MAX_STARTS: u32 = 5;

/// The task of one instance.
pub struct Worker {
    app: Arc<App>,
    workers: Arc<Workers>,
    id: InstanceId,
    bell: Arc<Notify>,
    pause: Duration,
    /// The driver reported the engine to have it.
    seen: bool,
    first_absent: Option<Instant>,
    starts: u32,
    /// How often the move to a larger disk broke off.
    broke_off: u32,
    /// The generation whose ports the node has, and which start of the instance that was.
    ports: Option<(Generation, u32)>,
    /// The driver has just started it, at some time of this worker's.
    booted: bool,
    /// The generation whose size the node was first asked for, and when.
    resizing: Option<(Generation, Instant)>,
    /// The row's deadline, and when that is on a clock that nobody sets.
    patience: Option<(Timestamp, Instant)>,
}

/// What follows a step.
enum Next {
    /// Look at the row again at once.
    Look,
    /// After a while, or when woken.
    After(Duration),
    /// After a growing while.
    Retry(String),
}

impl Worker {
    pub fn new(app: Arc<App>, workers: Arc<Workers>, id: InstanceId, bell: Arc<Notify>) -> Self {
        Self {
            app,
            workers,
            id,
            bell,
            pause: FIRST_PAUSE,
            seen: false,
            first_absent: None,
            starts: 0,
            broke_off: 0,
            ports: None,
            booted: false,
            resizing: None,
            patience: None,
        }
    }

    pub async fn run(mut self) {
        loop {
            self.workers.seen(self.id);
            let mut deadline = None;
            let next = match self.app.db.read(|rows| rows.instance(self.id)) {
                Ok(Some(instance)) => match plan(&instance) {
                    Step::Nothing => None,
                    step => {
                        deadline = self.deadline(&instance);
                        Some(self.step(step, &instance, deadline).await)
                    }
                },
                Ok(None) => None,
                Err(error) => Some(Next::Retry(error.to_string())),
            };
            self.app.settled.ring(self.id);
            match next {
                None if self.workers.finish(self.id) => return,
                None | Some(Next::Look) => self.pause = FIRST_PAUSE,
                Some(Next::After(pause)) => {
                    self.pause = FIRST_PAUSE;
                    self.rest(pause, deadline).await;
                }
                Some(Next::Retry(why)) => {
                    tracing::warn!(instance = %self.id, pause_ms = self.pause.as_millis(), %why, "will be tried again");
                    self.rest(self.pause, deadline).await;
                    self.pause = (self.pause * 2).min(LAST_PAUSE);
                }
            }
        }
    }

    /// Until the pause is over, the deadline is there, or something is new; a driver that asks for
    /// a long pause is asked again all the same.
    async fn rest(&self, pause: Duration, deadline: Option<Instant>) {
        let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
        let pause = pause.min(LAST_PAUSE).min(left.unwrap_or(LAST_PAUSE));
        drop(tokio::time::timeout(pause, self.bell.notified()).await);
    }

    /// When the patience with this instance ends. The wall clock is read once for each deadline: if
    /// it is set back or forward later, the patience does not change. Half of it is left at least:
    /// while Wharf was down nobody worked on the instance.
    fn deadline(&mut self, instance: &Instance) -> Option<Instant> {
        let written = instance.deadline?;
        match self.patience {
            Some((of, end)) if of == written => Some(end),
            _ => {
                let most = Duration::from_secs(self.app.config.provisioning_deadline_s);
                let left = Duration::from_millis(written.millis_since(now()));
                let end = Instant::now() + left.clamp(most / 2, most);
                self.patience = Some((written, end));
                Some(end)
            }
        }
    }

    async fn step(&mut self, step: Step, instance: &Instance, deadline: Option<Instant>) -> Next {
        let apply = Apply {
            db: self.app.db.clone(),
            id: self.id,
            generation: instance.generation,
        };
        if deadline.is_some_and(|end| Instant::now() >= end)
            && matches!(step, Step::Make | Step::Start)
        {
            return self
                .give_up(instance, &apply, "not reachable in time")
                .await;
        }
        let Some(driver) = self.app.drivers.get(&instance.node).cloned() else {
            return Next::Retry(format!("node {} is not configured", instance.node));
        };
        let target = match spec::target(&self.app, instance) {
            Ok(target) => target,
            Err(error) => return Next::Retry(error.to_string()),
        };
        match step {
            Step::Nothing => Next::Look,
            Step::Make => self.make(instance, &apply, &driver, target).await,
            Step::Start => {
                let report = driver.start(&target).await;
                if let Ok(Report {
                    phase: Phase::Growing(_),
                    ..
                }) = report
                {
                    return self.grow(instance, &apply, &driver, target).await;
                }
                self.follow(report, instance, &apply, &driver, &target)
                    .await
            }
            Step::Resize(size) => self.resize(instance, &apply, &driver, target, size).await,
            Step::Stop => self.stop(&apply, &driver, &target).await,
            Step::Delete => self.delete(instance, &apply, &driver, &target).await,
        }
    }

    fn detail(&self) -> Result<Detail, Error> {
        let missing = || Error::internal(format!("{} has no detail row", self.id));
        self.app
            .db
            .read(|rows| rows.detail(self.id)?.ok_or_else(missing))
    }

    async fn make(
        &mut self,
        instance: &Instance,
        apply: &Apply,
        driver: &NodeDriver,
        target: Target,
    ) -> Next {
        let vault = &self.app.vault;
        let made_of = self
            .detail()
            .and_then(|d| Ok((vault.open_all(self.id, &d.secrets, &instance.password)?, d)));
        let (secrets, detail) = match made_of {
            Ok(made_of) => made_of,
            Err(error) => return Next::Retry(error.to_string()),
        };
        let may_exist = !self.is_unasked(instance);
        self.workers.asked().insert(self.id);
        let spec = spec::spec(target.clone(), instance, detail, may_exist);
        let report = driver.ensure(&spec, &secrets).await;
        // Made, and ended before it was ever reachable: by the engine's restart, or by itself.
        if let Ok(Report {
            phase: Phase::Stopped(why),
            ..
        }) = &report
        {
            self.starts += 1;
            if self.starts > MAX_STARTS {
                let why = why.as_deref().unwrap_or("no reason given");
                return self
                    .give_up(
                        instance,
                        apply,
                        &format!("ends right after its start: {why}"),
                    )
                    .await;
            }
            let report = driver.start(&target).await;
            return self.follow(report, instance, apply, driver, &target).await;
        }
        self.follow(report, instance, apply, driver, &target).await
    }

    /// From a driver's answer to reachable, or to what is to be done about it.
    async fn follow(
        &mut self,
        report: Result<Report, PluginError>,
        instance: &Instance,
        apply: &Apply,
        driver: &NodeDriver,
        target: &Target,
    ) -> Next {
        let report = match report {
            Ok(report) => report,
            Err(PluginError::Insufficient(said)) if instance.provisioned => {
                let short = of_restart(&said, instance.size, instance.gpus.len());
                tracing::warn!(instance = %self.id, node = %instance.node, ?said, "no room to start");
                return done(apply.restart_failed(What::RestartShort(short)).await);
            }
            Err(
                error @ (PluginError::Invalid { .. }
                | PluginError::Conflict(_)
                | PluginError::Insufficient(_)
                | PluginError::NotFound
                | PluginError::Unsupported(_)),
            ) => return self.give_up(instance, apply, &error.to_string()).await,
            Err(PluginError::RetryLater(pause)) => return Next::After(pause),
            Err(error) => return Next::Retry(error.to_string()),
        };
        self.seen |= !matches!(report.phase, Phase::Absent | Phase::Pulling(_));
        let again = report.again.unwrap_or(FIRST_PAUSE);
        match report.phase {
            Phase::Failed(why) => self.give_up(instance, apply, &why).await,
            Phase::Absent if instance.provisioned => {
                self.give_up(instance, apply, "the engine does not have it any more")
                    .await
            }
            Phase::Absent | Phase::Pulling(_) | Phase::Creating | Phase::Growing(_) => {
                Next::After(again)
            }
            Phase::Stopped(why) => Next::Retry(format!("stopped: {why:?}")),
            phase @ (Phase::Booting | Phase::Ready) => {
                // Just started, perhaps again after it ended unseen: its ports are gone.
                if phase == Phase::Booting {
                    self.ports = None;
                    self.booted = true;
                }
                match self.set_ports(driver, target).await {
                    Ok(()) => {}
                    Err(PluginError::RetryLater(pause)) => return Next::After(pause),
                    Err(error) => return Next::Retry(error.to_string()),
                }
                self.reach(&phase, again, instance, apply, driver).await
            }
        }
    }

    /// A virtual machine's ports die with it: they are set once for each start, and when they
    /// change.
    async fn set_ports(&mut self, driver: &NodeDriver, target: &Target) -> Result<(), PluginError> {
        let which = (target.generation, self.starts);
        if target.resource_type == ResourceType::Vm && self.ports != Some(which) {
            driver.set_ports(target).await?;
            self.ports = Some(which);
        }
        Ok(())
    }

    async fn reach(
        &self,
        phase: &Phase,
        again: Duration,
        instance: &Instance,
        apply: &Apply,
        driver: &NodeDriver,
    ) -> Next {
        let up = match self.path(instance, driver) {
            // It was up before and runs on, as it was asked to. What its user made of its ways in
            // since is the user's.
            _ if *phase == Phase::Ready
                && !self.booted
                && instance.provisioned
                && instance.deadline.is_none() =>
            {
                true
            }
            Ok(Some(path)) => {
                // A newer intent does not wait for an instance to come up.
                tokio::select! {
                    up = reach::wait(&path, REACH) => up,
                    () = self.bell.notified() => return Next::Look,
                }
            }
            Ok(None) => *phase == Phase::Ready,
            Err(error) => return Next::Retry(error.to_string()),
        };
        if up {
            done(apply.up().await)
        } else {
            Next::After(again)
        }
    }

    /// The user's way to the instance; none if its engine only simulates.
    fn path(&self, instance: &Instance, driver: &NodeDriver) -> Result<Option<reach::Path>, Error> {
        let features = self.app.features.get(&instance.node);
        if features.is_some_and(|f| !f.network) {
            return Ok(None);
        }
        let detail = self.app.db.read(|rows| rows.detail(self.id))?;
        let health = detail.map_or(Health::Ssh, |d| d.blueprint.health.clone());
        let node = self
            .app
            .config
            .node
            .iter()
            .find(|n| n.name == driver.name().0);
        let probe_host = node.and_then(|n| n.probe_host.clone());
        let (host, port) = match health {
            Health::Ssh => (instance.ssh_host.clone(), Some(instance.ssh_port)),
            Health::Http(_) => (self.app.config.web.host.clone(), instance.web_port),
        };
        let port = port.ok_or_else(|| Error::internal(format!("{} has no web port", self.id)))?;
        Ok(Some(reach::Path {
            health,
            host: probe_host.unwrap_or(host),
            port,
        }))
    }

    /// For good: an error while it was being made, stopped again after a restart.
    async fn give_up(&self, instance: &Instance, apply: &Apply, why: &str) -> Next {
        tracing::warn!(instance = %self.id, node = %instance.node, why, "given up");
        done(if instance.provisioned {
            apply
                .restart_failed(What::RestartFailed(why.to_owned()))
                .await
        } else {
            apply.failed(why.to_owned()).await
        })
    }

    async fn stop(&mut self, apply: &Apply, driver: &NodeDriver, target: &Target) -> Next {
        let limits = &self.app.config.limits;
        let grace = Duration::from_millis(match target.resource_type {
            ResourceType::Container => limits.stop_grace_ms,
            ResourceType::Vm => limits.vm_stop_grace_ms,
        });
        match driver.stop(target, grace).await {
            Ok(Report {
                phase: Phase::Stopped(_) | Phase::Absent | Phase::Failed(_),
                ..
            })
            | Err(PluginError::NotFound) => done(apply.released().await),
            Ok(report) => Next::After(report.again.unwrap_or(FIRST_PAUSE)),
            Err(PluginError::RetryLater(pause)) => Next::After(pause),
            Err(error) => Next::Retry(error.to_string()),
        }
    }

    async fn delete(
        &mut self,
        instance: &Instance,
        apply: &Apply,
        driver: &NodeDriver,
        target: &Target,
    ) -> Next {
        match driver.delete(target).await {
            Ok(Report {
                phase: Phase::Absent,
                ..
            })
            | Err(PluginError::NotFound) => {
                if let Some(wait) = self.until_certain(instance) {
                    return Next::After(wait);
                }
                self.workers.asked().remove(&self.id);
                done(apply.purged().await)
            }
            Ok(report) => Next::After(report.again.unwrap_or(FIRST_PAUSE)),
            Err(PluginError::RetryLater(pause)) => Next::After(pause),
            Err(error) => Next::Retry(error.to_string()),
        }
    }

    /// No driver was ever asked to make it: neither by this process, nor by one before its row was
    /// written.
    fn is_unasked(&self, instance: &Instance) -> bool {
        instance.created_at >= self.workers.started && !self.workers.asked().contains(&self.id)
    }

    /// How long to wait until an absence proves that the instance will not appear any more.
    fn until_certain(&mut self, instance: &Instance) -> Option<Duration> {
        if instance.provisioned || self.seen || self.is_unasked(instance) {
            return None;
        }
        let first = *self.first_absent.get_or_insert_with(Instant::now);
        let left = SECOND_LOOK.saturating_sub(first.elapsed());
        (!left.is_zero()).then_some(left)
    }
}

/// After a write: look again, at what holds now.
fn done(written: Result<bool, Error>) -> Next {
    match written {
        Ok(_) => Next::Look,
        Err(error) => Next::Retry(error.to_string()),
    }
}

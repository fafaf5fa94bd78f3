//! From a driver's report of a started instance to a reachable one.

use super::attempt::{Attempt, FIRST_PAUSE, NextAttempt};
use super::tasks::until_certain;
use super::{host_key, reach};
use crate::private_ports::{has_private_page, has_shell};
use std::convert::Infallible;
use std::future;
use std::time::Duration;
use tokio::time::Instant;
use wharf_db::Read;
use wharf_domain::blueprint::Health;
use wharf_domain::driver::{DriverReport, Phase, PluginError};
use wharf_domain::error::Error;
use wharf_domain::event::EventKind;
use wharf_domain::host_key::HostKey;
use wharf_domain::instance::ResourceType;
use wharf_domain::shortage::of_restart;

/// How long one attempt probes the instance before it asks the driver again.
const REACH: Duration = Duration::from_secs(2);

impl Attempt<'_> {
    /// Goes on from a driver's report.
    pub async fn follow(&mut self, report: Result<DriverReport, PluginError>) -> NextAttempt {
        if let Err(PluginError::Insufficient(short)) = &report {
            match self.lost(short) {
                Ok(Some(lost)) => return self.without(lost).await,
                Ok(None) => {}
                Err(error) => return error.into(),
            }
        }
        let report = match report {
            Ok(report) => report,
            Err(PluginError::Insufficient(short)) if self.instance.provisioned => {
                if let Err(next) = self.believe_failure().await {
                    return next;
                }
                let instance = self.instance;
                tracing::warn!(node = %instance.node, ?short, "no room to start");
                let short = of_restart(&short, instance.size, instance.gpus.len());
                return self.start_failed(EventKind::RestartShort(short)).await;
            }
            Err(
                error @ (PluginError::Invalid { .. }
                | PluginError::Conflict(_)
                | PluginError::Insufficient(_)
                | PluginError::NotFound
                | PluginError::Unsupported(_)),
            ) => return self.give_up(&error.to_string()).await,
            Err(error) => return error.into(),
        };
        self.history.refused = 0;
        self.history.refused_since = None;
        self.history.runs = report.phase == Phase::Ready;
        self.history.seen |= !matches!(report.phase, Phase::Absent | Phase::Pulling(_));
        let again = report.again.unwrap_or(FIRST_PAUSE);
        match report.phase {
            Phase::Failed(why) => self.give_up(&why).await,
            Phase::Absent if self.instance.provisioned => {
                self.give_up("the engine no longer has the instance").await
            }
            Phase::Absent | Phase::Pulling(_) | Phase::Creating | Phase::Growing(_) => {
                NextAttempt::After(again)
            }
            Phase::Elsewhere(place) => self.bring_back(&place).await,
            Phase::Stopped(why) => NextAttempt::Retry(format!("stopped: {why:?}")),
            phase @ (Phase::Booting | Phase::Ready) => {
                if let Err(next) = self.taken().await {
                    return next;
                }
                self.app.growing.end(self.instance.id);
                self.history.growth_event = None;
                // A boot removes the ports.
                if phase == Phase::Booting {
                    self.history.ports = None;
                    self.history.booted = true;
                }
                match self.set_ports().await {
                    Ok(()) => self.reach(&phase, again).await,
                    Err(error) => error.into(),
                }
            }
        }
    }

    /// Sets a VM's ports after each boot and each change.
    async fn set_ports(&mut self) -> Result<(), PluginError> {
        let current = (self.target.generation, self.history.starts);
        if self.target.resource_type == ResourceType::Vm && self.history.ports != Some(current) {
            self.driver.set_ports(&self.target).await?;
            self.history.ports = Some(current);
        }
        Ok(())
    }

    async fn reach(&mut self, phase: &Phase, again: Duration) -> NextAttempt {
        let instance = self.instance;
        let begun = Instant::now();
        let mut key = None;
        let up = match self.path() {
            // The instance never stopped. Its user may have changed the ways in since it was reached.
            _ if *phase == Phase::Ready
                && !self.history.booted
                && instance.provisioned
                && instance.deadline.is_none() =>
            {
                return self.ready(None).await;
            }
            Ok(Some(path)) => {
                // A newer intent ends the wait.
                tokio::select! {
                    biased;
                    () = self.notify.notified() => return NextAttempt::Look,
                    up = reach::wait(&path, REACH) => up,
                    never = self.host_key_beside(&path.health, &mut key) => match never {},
                }
            }
            Ok(None) => *phase == Phase::Ready,
            Err(error) => return error.into(),
        };
        if up {
            if key.is_none() {
                key = self.host_key().await;
            }
            self.ready(key).await
        } else {
            // The driver's pause has passed during the probes. Another one would hide a page that works.
            NextAttempt::After(again.saturating_sub(begun.elapsed()))
        }
    }

    /// Notes that the instance is reachable, and its host key.
    async fn ready(&mut self, key: Option<HostKey>) -> NextAttempt {
        if let Err(next) = self.believe().await {
            return next;
        }
        // The node is asked for the size again once no other one can follow: one that it was asked for and did not
        // take, by this process or right before the end of an earlier one. No row tells of a smaller one.
        match until_certain(self.tasks.unanswered(self.instance.id).size) {
            None => self.writer.ready(key).await.into(),
            Some(wait) => {
                // The instance is reachable: a deadline does not end it meanwhile.
                let now = Instant::now();
                self.history.stand_still(now, now + wait);
                NextAttempt::After(wait)
            }
        }
    }

    /// The host key that the instance shows its user; `None` if it offers no SSH, or does not answer.
    async fn host_key(&self) -> Option<HostKey> {
        let (host, port) = self.shell()?;
        let key = host_key::learn(&host, port).await;
        if key.is_none() {
            let node = &self.instance.node;
            tracing::warn!(%node, "the instance shows no SSH host key");
        }
        key
    }

    /// Learns the host key while a page starts, which takes longer than the SSH server beside it.
    async fn host_key_beside(&self, health: &Health, key: &mut Option<HostKey>) -> Infallible {
        if let (Health::Http(_), Some((host, port))) = (health, self.shell()) {
            while key.is_none() {
                tokio::time::sleep(FIRST_PAUSE).await;
                *key = host_key::learn(&host, port).await;
            }
        }
        future::pending().await
    }

    /// The address to the instance's SSH port; `None` if it offers no SSH.
    fn shell(&self) -> Option<(String, u16)> {
        let instance = self.instance;
        let features = self.app.nodes.features(&instance.node);
        let has_shell = (self.app.db).read(|rows| has_shell(rows, instance));
        let offers = has_shell.unwrap_or(instance.ssh) && features.is_none_or(|f| f.network);
        offers.then(|| self.app.ssh_address(instance))
    }

    /// The address to the instance that shows whether it is up; `None` if the engine has no network.
    fn path(&self) -> Result<Option<reach::ProbePath>, Error> {
        let instance = self.instance;
        let features = self.app.nodes.features(&instance.node);
        if features.is_some_and(|f| !f.network) {
            return Ok(None);
        }
        let (provisioning_spec, web_is_private) = self.app.db.read(|rows| {
            let spec = rows.provisioning_spec(instance.id)?;
            Ok::<_, Error>((spec, has_private_page(rows, instance.id)?))
        })?;
        let health = provisioning_spec.map_or(Health::Ssh, |d| d.blueprint.health.clone());
        let address = match health {
            Health::Ssh => Some(self.app.ssh_address(instance)),
            Health::Http(_) => self.app.web_address(instance, web_is_private),
        };
        let missing = || Error::internal(format!("{} has no web port", instance.id));
        let (host, port) = address.ok_or_else(missing)?;
        Ok(Some(reach::ProbePath { health, host, port }))
    }
}

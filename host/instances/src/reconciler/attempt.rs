//! One attempt to bring a node nearer to an instance's row.

use super::spec;
use super::store::{NodeStore, StoreFailure};
use super::tasks::Tasks;
use super::writer::ObservationWriter;
use crate::App;
use crate::content::IncomingContent;
use std::time::Duration;
use tokio::sync::{Notify, SemaphorePermit};
use tokio::time::Instant;
use wharf_db::{ProvisioningSpec, Read};
use wharf_domain::driver::{DriverTarget, PluginError, Spec};
use wharf_domain::error::Error;
use wharf_domain::event::EventKind;
use wharf_domain::ids::{Generation, NodeId};
use wharf_domain::instance::{Instance, Intent};
use wharf_domain::time::Timestamp;
use wharf_plugin::NodeDriver;

/// The reason of a failure at the deadline.
pub const LATE: &str = "not reachable in time";
/// Begins the reason of a failure with the content of a backup, whose words are for the owner.
pub const NO_CONTENT: &str = "no content: ";

/// The pause before the next attempt where nothing names a longer one.
pub const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// An attempt. Each step of the plan is a method of it, in a file of its own.
pub struct Attempt<'a> {
    pub app: &'a App,
    pub tasks: &'a Tasks,
    /// Notified of a newer intent.
    pub notify: &'a Notify,
    pub history: &'a mut History,
    pub instance: &'a Instance,
    pub driver: &'a NodeDriver,
    /// The driver's count of interruptions when the node was known to show its own store.
    pub interruptions: u64,
    pub target: DriverTarget,
    /// Writes for this attempt's generation.
    pub writer: ObservationWriter,
    /// Held by a new instance until the driver's first report.
    pub permit: Option<SemaphorePermit<'a>>,
}

/// The findings of earlier attempts for an instance.
#[derive(Default)]
pub struct History {
    /// The driver was asked for the instance.
    pub begun: bool,
    /// The engine has or had the instance.
    pub seen: bool,
    pub first_absent: Option<Instant>,
    /// The driver is asked once more after an answer that another store may have given.
    pub doubted: bool,
    pub starts: u32,
    /// How often the engine refused an allocation that something else holds, and since when.
    pub refused: u32,
    pub refused_since: Option<Instant>,
    /// How often the instance got another allocation.
    pub replaced: u32,
    /// How often the work on the disk broke off.
    pub broke_off: u32,
    /// The time since which a restore breaks off.
    pub broken_since: Option<Instant>,
    /// The time since which the content moves to a larger disk, and the time of the next event about it.
    pub growth_event: Option<GrowthEvent>,
    /// The generation whose ports the node has, and the number of the start since then.
    pub ports: Option<(Generation, u32)>,
    /// The driver's last report said that the instance runs.
    pub runs: bool,
    /// The driver has started the instance.
    pub booted: bool,
    /// The time since which the new node of a move is out of reach.
    pub away_since: Option<Instant>,
    /// The time since which the old node of a move is out of reach.
    pub old_away_since: Option<Instant>,
    /// The old node of a move offers the content.
    pub offered: bool,
    /// The content of a new instance that the node takes.
    pub content: Option<IncomingContent>,
    /// The generation whose size the driver was asked for first, and the time.
    pub resizing: Option<(Generation, Instant)>,
    deadline: Option<(Timestamp, Instant)>,
    /// The end of the time by which the deadline was moved last.
    stood_still: Option<Instant>,
}

/// The last event about the progress of a move to a larger disk.
#[derive(Debug, Clone, Copy)]
pub struct GrowthEvent {
    /// The begin of the move.
    pub begun: Instant,
    /// The time of the next event.
    pub next: Instant,
}

/// The next action of the worker.
pub enum NextAttempt {
    /// Read the row again at once.
    Look,
    /// Read the row after a pause, or when notified.
    After(Duration),
    /// Retry with backoff.
    Retry(String),
    /// Retry with backoff. The node was out of reach, so the deadline stands still.
    Away(String),
}

impl From<Error> for NextAttempt {
    fn from(error: Error) -> Self {
        Self::Retry(error.chain().to_string())
    }
}

impl From<PluginError> for NextAttempt {
    fn from(error: PluginError) -> Self {
        match error {
            PluginError::RetryLater(pause) => Self::After(pause),
            error @ (PluginError::Unreachable(_) | PluginError::Busy) => {
                Self::Away(error.to_string())
            }
            error => Self::Retry(error.to_string()),
        }
    }
}

/// After a write the row is read again, whether or not the write was stale.
impl From<Result<bool, Error>> for NextAttempt {
    fn from(written: Result<bool, Error>) -> Self {
        written.map_or_else(Self::from, |_| Self::Look)
    }
}

impl Attempt<'_> {
    pub fn provisioning_spec(&self) -> Result<ProvisioningSpec, Error> {
        let id = self.instance.id;
        let missing = || Error::internal(format!("{id} has no provisioning spec"));
        self.app
            .db
            .read(|rows| rows.provisioning_spec(id)?.ok_or_else(missing))
    }

    /// The specification for the driver. `may_exist` tells it of an earlier request.
    pub fn spec(&self, may_exist: bool) -> Result<Spec, Error> {
        let provisioning_spec = self.provisioning_spec()?;
        let target = self.target.clone();
        spec::spec(
            self.app,
            target,
            self.instance,
            provisioning_spec,
            may_exist,
        )
    }

    /// Puts a new instance into error, and a restarted one back to stopped.
    pub async fn give_up(&mut self, why: &str) -> NextAttempt {
        if let Err(next) = self.believe_failure().await {
            return next;
        }
        tracing::warn!(node = %self.instance.node, why, "giving up");
        if self.instance.provisioned {
            return self
                .start_failed(EventKind::RestartFailed(why.to_owned()))
                .await;
        }
        self.writer.failed(why.to_owned()).await.into()
    }

    /// Puts a restarted instance back to stopped, and tells the requests that wait for it.
    pub async fn start_failed(&self, why: EventKind) -> NextAttempt {
        let (id, generation) = (self.instance.id, self.instance.generation);
        self.app.waiters.refuse(id, generation, why.clone());
        self.writer.restart_failed(why).await.into()
    }

    /// Notes that the node has taken the start of a stopped instance.
    pub async fn taken(&mut self) -> Result<(), NextAttempt> {
        if self.instance.intent != Intent::Start {
            return Ok(());
        }
        self.believe().await?;
        let deadline = self.app.deadline(self.app.clock.now());
        if !self.writer.start_taken(deadline).await? {
            return Err(NextAttempt::Look);
        }
        let row = self.app.db.read(|rows| rows.instance(self.instance.id))?;
        // The target lacks a change that came in between, such as a port.
        if row.is_some_and(|row| row.version == self.instance.version + 1) {
            Ok(())
        } else {
            Err(NextAttempt::Look)
        }
    }

    /// Gives up because the deadline has passed. An instance that runs and cannot be reached has not
    /// ended, and keeps its intent if it was reachable before.
    pub async fn expire(&mut self) -> NextAttempt {
        if !(self.instance.provisioned && self.history.runs) {
            return self.give_up(LATE).await;
        }
        if let Err(next) = self.believe_failure().await {
            return next;
        }
        tracing::warn!(node = %self.instance.node, "the instance runs and is not reachable in time");
        self.writer.ready(None).await.into()
    }

    /// Makes sure that an answer was one of the node's own store, before it changes the row. If contact was lost
    /// since the node was verified, it may be one of another store.
    pub async fn believe(&mut self) -> Result<(), NextAttempt> {
        let (instance, driver, interruptions) = (self.instance, self.driver, self.interruptions);
        if driver.interruptions() != interruptions {
            self.history.ports = None;
            self.history.runs = false;
        }
        self.believe_of(&instance.node, driver, interruptions).await
    }

    /// Does so for an answer of any node, whose driver had this count of interruptions when the node was known to show
    /// its own store.
    pub async fn believe_of(
        &mut self,
        node: &NodeId,
        driver: &NodeDriver,
        interruptions: u64,
    ) -> Result<(), NextAttempt> {
        if driver.interruptions() == interruptions {
            self.history.doubted = false;
            return Ok(());
        }
        confirm(self.app, node, driver).await?;
        // An engine may end each connection after its answer, so that the second answer counts.
        if !std::mem::replace(&mut self.history.doubted, true) {
            return Err(NextAttempt::Look);
        }
        Ok(())
    }

    /// Makes sure that a failure was one of the node's own store, which the node shows now. Only then it may change
    /// an intent.
    pub async fn believe_failure(&mut self) -> Result<(), NextAttempt> {
        self.believe().await?;
        confirm(self.app, &self.instance.node, self.driver).await
    }
}

/// Confirms that a node shows the store that has its instances.
async fn confirm(app: &App, node: &NodeId, driver: &NodeDriver) -> Result<(), NextAttempt> {
    let store = NodeStore { app, node, driver };
    store.confirm().await.map_err(|failure| match failure {
        StoreFailure::Node(error) => NextAttempt::Away(error.to_string()),
        StoreFailure::Rows(error) => error.into(),
    })
}

impl History {
    /// The row's deadline on the monotonic clock, which setting the wall clock does not change. At
    /// least half of `full` remains at the first attempt: the service may have been down.
    pub fn deadline(
        &mut self,
        instance: &Instance,
        full: Duration,
        now: Timestamp,
    ) -> Option<Instant> {
        let written = instance.deadline?;
        match self.deadline {
            Some((of, deadline)) if of == written => Some(deadline),
            _ => {
                let left = Duration::from_millis(written.millis_since(now));
                let deadline = Instant::now() + left.clamp(full / 2, full);
                self.deadline = Some((written, deadline));
                Some(deadline)
            }
        }
    }

    /// Moves the deadline by the time between two instants, in which the node was out of reach or busy with others.
    /// An attempt and the pass that it is part of count a time once.
    pub fn stand_still(&mut self, since: Instant, until: Instant) {
        let since = self.stood_still.map_or(since, |counted| counted.max(since));
        let time = until.saturating_duration_since(since);
        self.stood_still = Some(since + time);
        if let Some((_, deadline)) = &mut self.deadline {
            *deadline += time;
        }
        if let Some(since) = &mut self.broken_since {
            *since += time;
        }
    }

    /// Restarts the time until the row's deadline.
    pub fn extend_deadline(&mut self, instance: &Instance, full: Duration) {
        if let Some(written) = instance.deadline {
            self.deadline = Some((written, Instant::now() + full));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::History;
    use std::time::Duration;
    use tokio::time::Instant;
    use wharf_domain::time::Timestamp;

    #[test]
    fn a_time_moves_the_deadline_once() {
        let begun = Instant::now();
        let at = |seconds| begun + Duration::from_secs(seconds);
        let mut history = History {
            deadline: Some((Timestamp(0), at(60))),
            broken_since: Some(at(0)),
            ..History::default()
        };
        // The wait for the node, and the pass that it is part of.
        history.stand_still(at(1), at(6));
        history.stand_still(at(0), at(7));
        assert_eq!(history.deadline.map(|(_, end)| end), Some(at(66)));
        assert_eq!(history.broken_since, Some(at(6)));
        // A later time counts whole.
        history.stand_still(at(10), at(12));
        assert_eq!(history.deadline.map(|(_, end)| end), Some(at(68)));
    }
}

//! The steps that stop and delete an instance.

use super::attempt::{Attempt, FIRST_PAUSE, NextAttempt};
use super::tasks::until_certain;
use crate::snapshots::has_needed;
use std::time::Duration;
use tokio::time::Instant;
use wharf_db::Read as _;
use wharf_domain::driver::{DriverReport, Phase, PluginError};
use wharf_domain::error::Error;
use wharf_domain::instance::ResourceType;

/// The pause of a deletion that waits for an instance that is being made from a snapshot.
const WHILE_NEEDED: Duration = Duration::from_millis(500);

impl Attempt<'_> {
    /// Stops the instance and releases its compute.
    pub async fn stop(&mut self) -> NextAttempt {
        if let Err(next) = self.before_stop().await {
            return next;
        }
        match self.driver.stop(&self.target, self.grace()).await {
            Ok(DriverReport {
                phase: Phase::Stopped(_) | Phase::Failed(_) | Phase::Absent,
                ..
            })
            | Err(PluginError::NotFound) => match self.believe().await {
                Ok(()) => self.stopped().await,
                Err(next) => next,
            },
            Ok(report) => NextAttempt::After(report.again.unwrap_or(FIRST_PAUSE)),
            Err(error) => error.into(),
        }
    }

    /// The time for an instance to end by itself.
    fn grace(&self) -> Duration {
        let limits = self.app.config().limits;
        Duration::from_millis(match self.target.resource_type {
            ResourceType::Container => limits.stop_grace_ms,
            ResourceType::Vm => limits.vm_stop_grace_ms,
        })
    }

    /// Releases the compute of an instance that does not run. A change of its volumes comes after that, so
    /// that an engine that does not take it holds up nothing.
    async fn stopped(&mut self) -> NextAttempt {
        match self.is_released() {
            Ok(true) => {
                if let Err(next) = self.set_volumes().await {
                    return next;
                }
            }
            Ok(false) => {}
            Err(error) => return error.into(),
        }
        self.writer.released().await.into()
    }

    /// Waits for a snapshot that is being taken, and restores an instance that is stopped.
    async fn before_stop(&mut self) -> Result<(), NextAttempt> {
        if self.is_released()? {
            return self.restore().await;
        }
        self.wait_for_copy().await
    }

    fn is_released(&self) -> Result<bool, Error> {
        let claim = self.app.db.read(|rows| rows.claim(self.instance.id))?;
        Ok(claim.is_some_and(|claim| !claim.compute))
    }

    /// Stops a deleted instance that has to stay: its owner does not reach it, and it costs nothing.
    async fn stop_deleted(&mut self) -> NextAttempt {
        match self.driver.stop(&self.target, self.grace()).await {
            Ok(DriverReport {
                phase: Phase::Stopped(_) | Phase::Failed(_) | Phase::Absent,
                ..
            })
            | Err(PluginError::NotFound) => NextAttempt::After(WHILE_NEEDED),
            Ok(report) => NextAttempt::After(report.again.unwrap_or(FIRST_PAUSE)),
            Err(error) => error.into(),
        }
    }

    /// Deletes the instance and frees everything it held. On some engines its snapshots go with it, so that it
    /// stays while an instance is being made from one.
    pub async fn delete(&mut self) -> NextAttempt {
        match self.app.db.read(|rows| has_needed(rows, self.instance.id)) {
            Ok(false) => {}
            Ok(true) => return self.stop_deleted().await,
            Err(error) => return error.into(),
        }
        match self.driver.delete(&self.target).await {
            Ok(DriverReport {
                phase: Phase::Absent,
                ..
            })
            | Err(PluginError::NotFound) => {
                if let Err(next) = self.believe().await {
                    return next;
                }
                if let Some(wait) = self.until_certain() {
                    return NextAttempt::After(wait);
                }
                self.tasks.forget(self.instance.id);
                self.writer.purged().await.into()
            }
            Ok(report) => NextAttempt::After(report.again.unwrap_or(FIRST_PAUSE)),
            Err(error) => error.into(),
        }
    }

    /// The time until an absence proves that the instance will not appear any more.
    fn until_certain(&mut self) -> Option<Duration> {
        let instance = self.instance;
        if instance.provisioned || self.history.seen {
            return until_certain(self.tasks.unanswered(instance.id).creation);
        }
        let never = self.tasks.was_never_requested(&self.app.db, instance.id);
        if never.unwrap_or_default() {
            return None;
        }
        until_certain(Some(
            *self.history.first_absent.get_or_insert_with(Instant::now),
        ))
    }
}

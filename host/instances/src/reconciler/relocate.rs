//! The step that brings an instance to another node.

use super::attempt::{Attempt, FIRST_PAUSE, NextAttempt};
use super::writer::ObservationWriter;
use crate::App;
use crate::copies::copies;
use std::time::Duration;
use wharf_domain::driver::{DriverReport, Phase, PluginError};
use wharf_domain::instance::Instance;

/// A move that breaks off more often than this will not complete.
const MAX_BROKE_OFF: u32 = 5;

impl Attempt<'_> {
    /// Moves the instance a step on. The attempt is one of the new node.
    pub async fn relocate(&mut self) -> NextAttempt {
        match self.app.db.read(|rows| copies(rows, self.instance.id)) {
            Ok(row) if row.making.is_some() => return self.carry(row.complete).await,
            Ok(_) => {}
            Err(error) => return error.into(),
        }
        let report = match self.fetch().await {
            Ok(report) => report,
            Err(next) => return next,
        };
        let again = report.again.unwrap_or(FIRST_PAUSE);
        match report.phase {
            Phase::Stopped(_) => {
                if let Err(next) = self.believe().await {
                    return next;
                }
                let deadline = self.app.deadline(self.app.clock.now());
                let arrived = self.writer.arrived(deadline).await;
                self.app.look_for_moves();
                arrived.into()
            }
            Phase::Elsewhere(progress) => {
                tracing::debug!(progress, "moving to another node");
                self.history.broke_off = 0;
                NextAttempt::After(again)
            }
            phase => {
                self.abandon_move(format!("the engine reports {phase:?}"))
                    .await
            }
        }
    }

    /// Fetches an instance that should be on this node and was moved by hand, or by a move that this
    /// service had given up. The next attempt starts it.
    pub async fn bring_back(&mut self, place: &str) -> NextAttempt {
        tracing::warn!(node = %self.instance.node, place, "the instance is elsewhere, fetching it");
        let spec = match self.spec(true) {
            Ok(spec) => spec,
            Err(error) => return error.into(),
        };
        match self.driver.move_here(&spec).await {
            Ok(report) if matches!(report.phase, Phase::Ready | Phase::Booting) => {
                // It was started there.
                let grace = Duration::from_millis(self.app.config().limits.stop_grace_ms);
                match self.driver.stop(&self.target, grace).await {
                    Ok(_) => NextAttempt::After(FIRST_PAUSE),
                    Err(error) => error.into(),
                }
            }
            Ok(report) => {
                // A copy of a disk outlasts the request for the start.
                if matches!(report.phase, Phase::Elsewhere(_)) {
                    if let Err(next) = self.taken().await {
                        return next;
                    }
                    self.extend_deadline();
                }
                NextAttempt::After(report.again.unwrap_or(FIRST_PAUSE))
            }
            Err(error) => error.into(),
        }
    }

    /// Asks the new node for the instance.
    async fn fetch(&mut self) -> Result<DriverReport, NextAttempt> {
        let spec = self.spec(true)?;
        let moved = self.driver.move_here(&spec).await;
        self.judge_move(moved).await
    }

    /// Ends a move that failed for good, or too often.
    pub(super) async fn judge_move(
        &mut self,
        moved: Result<DriverReport, PluginError>,
    ) -> Result<DriverReport, NextAttempt> {
        if let Err(PluginError::Insufficient(short)) = &moved {
            // The next attempt to move takes others.
            let lost = self.lost(short)?;
            self.keep_out(&lost.unwrap_or_default());
        }
        match moved {
            Ok(report) => Ok(report),
            Err(
                error @ (PluginError::Invalid { .. }
                | PluginError::Conflict(_)
                | PluginError::Insufficient(_)
                | PluginError::NotFound
                | PluginError::Unsupported(_)),
            ) => Err(self.abandon_move(error.to_string()).await),
            Err(error @ (PluginError::RetryLater(_) | PluginError::Busy)) => Err(error.into()),
            Err(error) => {
                self.history.broke_off += 1;
                if self.history.broke_off > MAX_BROKE_OFF {
                    Err(self.abandon_move(error.to_string()).await)
                } else {
                    Err(error.into())
                }
            }
        }
    }

    /// Leaves the instance on its old node.
    pub(super) async fn abandon_move(&mut self, why: String) -> NextAttempt {
        self.history.broke_off = 0;
        self.history.offered = false;
        abandon_move(self.app, &self.writer, self.instance, why).await
    }
}

/// Ends a move: the instance stays on its old node. The row is the one that the new node would have had.
pub async fn abandon_move(
    app: &App,
    writer: &ObservationWriter,
    instance: &Instance,
    why: String,
) -> NextAttempt {
    // Once a copy is complete, the old disk may be gone.
    match app.db.read(|rows| copies(rows, instance.id)) {
        Ok(row) if row.complete => return NextAttempt::Retry(why),
        Ok(_) => {}
        Err(error) => return error.into(),
    }
    tracing::warn!(instance = %instance.id, to = %instance.node, why, "the instance does not move");
    let deadline = app.deadline(app.clock.now());
    let written = writer.move_failed(why, deadline).await;
    app.look_for_moves();
    written.into()
}

//! The restore of a stopped instance, whose disk becomes that of a snapshot, and the wait for a snapshot that is
//! being taken of it.

use super::attempt::{Attempt, FIRST_PAUSE, NextAttempt};
use super::writer::ObservationWriter;
use crate::growing::Work;
use crate::restart;
use crate::snapshots::{RESTORES, RestoreRow, SOURCES, SourceRow};
use crate::volumes::has_changes;
use std::pin::pin;
use std::time::Duration;
use tokio::time::Instant;
use wharf_db::{Changes, Read as _, Rows as _, SNAPSHOTS, SNAPSHOTS_OF, View};
use wharf_domain::driver::{DriverReport, Phase, PluginError, SnapshotKind, Spec};
use wharf_domain::error::Error;
use wharf_domain::event::EventKind;
use wharf_domain::ids::SnapshotId;
use wharf_domain::instance::{Instance, Intent, Progress};
use wharf_domain::kept::KeptStatus;

/// The reason of a restore that waited for a snapshot of the present disk.
const NOT_BEFORE: &str = "the snapshot of the present disk could not be taken";
/// The time until the call of a driver that restores counts as work that goes on.
const LONG: Duration = Duration::from_secs(3);

impl Attempt<'_> {
    /// Waits while a snapshot of the instance is being taken: the engine may have frozen it.
    pub async fn wait_for_copy(&mut self) -> Result<(), NextAttempt> {
        let id = self.instance.id;
        let own = self.app.db.read(|rows| {
            let mut own = Vec::new();
            for snapshot in rows.keys_under(&SNAPSHOTS_OF, &id)? {
                // A damaged row does not keep the instance.
                let row = rows.get(&SNAPSHOTS, snapshot?).ok().flatten();
                let row = row.filter(|row| row.status() == KeptStatus::Creating);
                own.extend(row.map(|row| row.id));
            }
            Ok(own)
        })?;
        let progress = {
            let under_way = self.app.snapshot_progress.lock();
            own.iter().find_map(|id| under_way.get(id).cloned())
        };
        match progress {
            Some(progress) => Err(self.goes_on(Work::Copying, &progress, FIRST_PAUSE).await),
            None => Ok(()),
        }
    }

    /// Carries out a restore that is left to do. The instance is stopped.
    pub async fn restore(&mut self) -> Result<(), NextAttempt> {
        let id = self.instance.id;
        match self.app.db.read(|rows| rows.get(&RESTORES, id))? {
            Some(restore) => Err(self.restore_from(restore).await),
            None => Ok(()),
        }
    }

    async fn restore_from(&mut self, restore: RestoreRow) -> NextAttempt {
        if let Some(first) = restore.first {
            let row = match self.app.db.read(|rows| rows.get(&SNAPSHOTS, first)) {
                Ok(row) => row,
                Err(error) => return error.into(),
            };
            match row.map(|row| (row.status(), row.made)) {
                Some((KeptStatus::Creating, _)) => {
                    let progress = self.app.snapshot_progress.lock().get(&first).cloned();
                    let progress = progress.unwrap_or_default();
                    return self.goes_on(Work::Copying, &progress, FIRST_PAUSE).await;
                }
                Some((KeptStatus::Ready, _) | (_, true)) => {}
                _ => return self.restore_failed(restore.snapshot, NOT_BEFORE).await,
            }
        }
        let spec = match self.spec(true) {
            Ok(spec) => spec,
            Err(error) => return error.into(),
        };
        // A new process knows nothing of it, and one call may take long.
        if !self.app.growing.has(self.instance.id) {
            let id = self.instance.id;
            self.app.growing.note(id, Work::Restoring, "");
        }
        match self.restore_call(&spec, restore.snapshot).await {
            Ok(DriverReport {
                phase: Phase::Growing(progress),
                again,
                ..
            }) => {
                let pause = again.unwrap_or(FIRST_PAUSE);
                self.goes_on(Work::Restoring, &progress, pause).await
            }
            Ok(DriverReport {
                phase: Phase::Stopped(_),
                ..
            }) => {
                if let Err(next) = self.believe().await {
                    return next;
                }
                self.history.broke_off = 0;
                self.history.broken_since = None;
                self.app.growing.end(self.instance.id);
                self.extend_deadline();
                self.app.nodes.prove_limits(&self.instance.node);
                let features = self.app.nodes.features(&self.instance.node);
                let depends = features.is_some_and(|f| f.snapshots == SnapshotKind::Copied);
                self.writer.restored(restore.snapshot, depends).await.into()
            }
            // The engine has carried out a start that was withdrawn.
            Ok(DriverReport {
                phase: Phase::Booting | Phase::Ready,
                ..
            }) => {
                let grace = Duration::from_millis(self.app.config().limits.stop_grace_ms);
                match self.driver.stop(&self.target, grace).await {
                    Ok(_) => NextAttempt::After(FIRST_PAUSE),
                    Err(error) => error.into(),
                }
            }
            Ok(DriverReport {
                phase: Phase::Failed(why),
                ..
            }) => self.restore_failed(restore.snapshot, &why).await,
            Ok(DriverReport {
                phase: Phase::Elsewhere(place),
                ..
            }) => match self.bring_back(&place).await {
                NextAttempt::Retry(why) if self.gives_up() => {
                    self.restore_failed(restore.snapshot, &why).await
                }
                next => next,
            },
            Ok(DriverReport {
                phase: phase @ (Phase::Absent | Phase::Pulling(_) | Phase::Creating),
                again,
                ..
            }) => {
                if self.gives_up() {
                    let why = format!("the engine reports {phase:?}");
                    return self.restore_failed(restore.snapshot, &why).await;
                }
                NextAttempt::After(again.unwrap_or(FIRST_PAUSE))
            }
            // Other copies come first.
            Err(PluginError::RetryLater(pause)) => self.goes_on(Work::Restoring, "", pause).await,
            Err(
                error @ (PluginError::Invalid { .. }
                | PluginError::Conflict(_)
                | PluginError::Insufficient(_)
                | PluginError::NotFound
                | PluginError::Unsupported(_)),
            ) => {
                self.restore_failed(restore.snapshot, &error.to_string())
                    .await
            }
            Err(error @ (PluginError::Unreachable(_) | PluginError::Busy)) => error.into(),
            Err(error @ (PluginError::Other(_) | PluginError::Fault(_))) => {
                if self.gives_up() {
                    return self
                        .restore_failed(restore.snapshot, &error.to_string())
                        .await;
                }
                error.into()
            }
        }
    }

    /// Calls the driver. One call may restore for longer than the request of a start waits, so that the start is taken
    /// meanwhile, as one is that waits for a driver that reports progress.
    async fn restore_call(
        &self,
        spec: &Spec,
        snapshot: SnapshotId,
    ) -> Result<DriverReport, PluginError> {
        let mut call = pin!(self.driver.restore_snapshot(spec, snapshot));
        loop {
            tokio::select! {
                biased;
                report = &mut call => return report,
                () = tokio::time::sleep(LONG) => {}
            }
            if !self.app.nodes.is_away(&self.instance.node)
                && let Err(error) = self.take_start().await
            {
                tracing::warn!(%error, "the start is not taken yet");
            }
        }
    }

    /// Takes a start that was requested since the call began.
    async fn take_start(&self) -> Result<(), Error> {
        let id = self.instance.id;
        let row = self.app.db.read(|rows| rows.instance(id))?;
        if row.is_none_or(|row| row.intent != Intent::Start) {
            return Ok(());
        }
        let deadline = self.app.deadline(self.app.clock.now());
        self.writer.start_taken_meanwhile(deadline).await
    }

    /// Notes that the restore has broken off. Whether it will not complete: what is wrong with the engine may pass,
    /// and the disk may be half done until then.
    fn gives_up(&mut self) -> bool {
        let full = Duration::from_secs(self.app.config().provisioning_deadline_s);
        let since = *self.history.broken_since.get_or_insert_with(Instant::now);
        self.breaks_off() && since.elapsed() >= full
    }

    /// Ends a restore that does not complete.
    async fn restore_failed(&mut self, restore: SnapshotId, why: &str) -> NextAttempt {
        if let Err(next) = self.believe_failure().await {
            return next;
        }
        tracing::warn!(node = %self.instance.node, why, "the disk is not restored");
        self.history.broke_off = 0;
        self.history.broken_since = None;
        self.app.growing.end(self.instance.id);
        self.writer
            .restore_failed(restore, why.to_owned())
            .await
            .into()
    }
}

impl ObservationWriter {
    /// Ends a restore that is left to do, whatever was requested meanwhile, such as a start. `decide` adds to the
    /// changes that end it, unless the instance is deleted.
    async fn restore_ended(
        &self,
        restore: SnapshotId,
        decide: impl Fn(Instance, &View<'_>, Changes) -> Result<Changes, Error> + Send + 'static,
    ) -> Result<bool, Error> {
        let id = self.id;
        self.db
            .write_essential(move |view| {
                let left = view.rows.get(&RESTORES, id)?;
                match view.rows.instance(id)? {
                    Some(row) if left.is_some_and(|left| left.snapshot == restore) => {
                        let ended = Changes::none().remove(&RESTORES, id);
                        if row.intent == Intent::Delete {
                            return Ok((true, ended));
                        }
                        Ok((true, decide(row, view, ended)?))
                    }
                    _ => Ok((false, Changes::none())),
                }
            })
            .await
    }

    /// The disk is that of the snapshot. On some engines it needs the snapshot from now on.
    async fn restored(&self, restore: SnapshotId, depends: bool) -> Result<bool, Error> {
        self.restore_ended(restore, move |row, view, ended| {
            let Some(taken) = view.rows.get(&SNAPSHOTS, restore)? else {
                return Ok(ended);
            };
            let id = row.id;
            let what = EventKind::Restored(taken.name.to_string());
            let changes = ended.record(settled(row, view)?, view.now, what);
            Ok(if depends {
                changes.put(&SOURCES, id, SourceRow::from(&taken))
            } else {
                changes
            })
        })
        .await
    }

    /// The driver may have changed the disk before it failed. An instance that was to start stays stopped, so that its
    /// user learns of it before it runs with that disk.
    async fn restore_failed(&self, restore: SnapshotId, why: String) -> Result<bool, Error> {
        self.restore_ended(restore, move |row, view, ended| {
            let audited = restart::audit_no_room(&row, view)?;
            let mut row = settled(row, view)?;
            if row.intent != Intent::Stop {
                row.intend(Intent::Stop, None);
            }
            let what = EventKind::RestoreFailed(why.clone());
            let changes = ended.record(row, view.now, what);
            Ok(audited.into_iter().fold(changes, Changes::with))
        })
        .await
    }
}

/// A stopped instance has nothing else to do after a restore, unless its volumes change.
fn settled(mut row: Instance, view: &View<'_>) -> Result<Instance, Error> {
    let claim = view.rows.claim(row.id)?;
    let is_released = claim.is_some_and(|claim| !claim.compute);
    if row.intent == Intent::Stop && is_released && !has_changes(view.rows, row.id)? {
        row.progress = Progress::Settled;
    }
    Ok(row)
}

//! The restore of a stopped instance, whose disk becomes that of a snapshot, and the wait for a snapshot that is
//! being taken of it.

use super::attempt::{Attempt, FIRST_PAUSE, NextAttempt};
use super::writer::ObservationWriter;
use crate::growing::Work;
use crate::restart;
use crate::snapshots::{RESTORES, RestoreRow, SOURCES, SourceRow};
use crate::volumes::has_changes;
use std::time::Duration;
use tokio::time::Instant;
use wharf_db::{Changes, Read as _, Rows as _, SNAPSHOTS, SNAPSHOTS_OF, View};
use wharf_domain::driver::{DriverReport, Phase, PluginError, SnapshotKind};
use wharf_domain::error::Error;
use wharf_domain::event::EventKind;
use wharf_domain::ids::SnapshotId;
use wharf_domain::instance::{Instance, Intent, Progress};
use wharf_domain::kept::KeptStatus;

/// The reason of a restore that waited for a snapshot of the present disk.
const NOT_BEFORE: &str = "the snapshot of the present disk could not be taken";

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
                _ => return self.restore_failed(NOT_BEFORE).await,
            }
        }
        let spec = match self.spec(true) {
            Ok(spec) => spec,
            Err(error) => return error.into(),
        };
        match self.driver.restore_snapshot(&spec, restore.snapshot).await {
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
            }) => self.restore_failed(&why).await,
            Ok(DriverReport {
                phase: Phase::Elsewhere(place),
                ..
            }) => match self.bring_back(&place).await {
                NextAttempt::Retry(why) if self.gives_up() => self.restore_failed(&why).await,
                next => next,
            },
            Ok(DriverReport {
                phase: phase @ (Phase::Absent | Phase::Pulling(_) | Phase::Creating),
                again,
                ..
            }) => {
                if self.gives_up() {
                    let why = format!("the engine reports {phase:?}");
                    return self.restore_failed(&why).await;
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
            ) => self.restore_failed(&error.to_string()).await,
            Err(error @ (PluginError::Unreachable(_) | PluginError::Busy)) => error.into(),
            Err(error @ (PluginError::Other(_) | PluginError::Fault(_))) => {
                if self.gives_up() {
                    return self.restore_failed(&error.to_string()).await;
                }
                error.into()
            }
        }
    }

    /// Notes that the restore has broken off. Whether it will not complete: what is wrong with the engine may pass,
    /// and the disk may be half done until then.
    fn gives_up(&mut self) -> bool {
        let full = Duration::from_secs(self.app.config().provisioning_deadline_s);
        let since = *self.history.broken_since.get_or_insert_with(Instant::now);
        self.breaks_off() && since.elapsed() >= full
    }

    /// Ends a restore that does not complete.
    async fn restore_failed(&mut self, why: &str) -> NextAttempt {
        if let Err(next) = self.believe_failure().await {
            return next;
        }
        tracing::warn!(node = %self.instance.node, why, "the disk is not restored");
        self.history.broke_off = 0;
        self.history.broken_since = None;
        self.app.growing.end(self.instance.id);
        self.writer.restore_failed(why.to_owned()).await.into()
    }
}

impl ObservationWriter {
    /// The disk is that of the snapshot. On some engines it needs the snapshot from now on. The restore is over whatever
    /// was requested meanwhile, such as a start.
    async fn restored(&self, restore: SnapshotId, depends: bool) -> Result<bool, Error> {
        let id = self.id;
        let decide = move |view: &View<'_>| {
            let left = view.rows.get(&RESTORES, id)?;
            let is_left = left.is_some_and(|left| left.snapshot == restore);
            let (Some(row), Some(taken), true) = (
                view.rows.instance(id)?,
                view.rows.get(&SNAPSHOTS, restore)?,
                is_left,
            ) else {
                return Ok((false, Changes::none()));
            };
            let row = settled(row, view)?;
            let what = EventKind::Restored(taken.name.to_string());
            let changes = Changes::none()
                .remove(&RESTORES, id)
                .record(row, view.now, what);
            Ok((
                true,
                if depends {
                    changes.put(&SOURCES, id, SourceRow::from(&taken))
                } else {
                    changes
                },
            ))
        };
        self.db.write_essential(decide).await
    }

    /// The driver may have changed the disk before it failed. An instance that was to start stays stopped, so that its
    /// user learns of it before it runs with that disk.
    async fn restore_failed(&self, why: String) -> Result<bool, Error> {
        self.on_row(move |row, view| {
            let id = row.id;
            let audited = restart::audit_no_room(&row, view)?;
            let mut row = settled(row, view)?;
            if row.intent != Intent::Stop {
                row.intend(Intent::Stop, None);
            }
            let what = EventKind::RestoreFailed(why.clone());
            let changes = Changes::none()
                .remove(&RESTORES, id)
                .record(row, view.now, what);
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

//! The volumes of an instance on its node: whether they are usable, and changes of them on an engine that can
//! attach volumes late.

use super::attempt::{Attempt, FIRST_PAUSE, NextAttempt};
use super::writer::ObservationWriter;
use crate::snapshots::RESTORES;
use crate::volumes::{
    MOUNTS, MountProgress, MountRow, Usable, attached, has_changes, rows_of, usable,
};
use tokio::time::Instant;
use wharf_db::{Changes, Read as _, Rows as _, VOLUMES};
use wharf_domain::driver::{DriverReport, Phase, PluginError};
use wharf_domain::error::Error;
use wharf_domain::event::EventKind;
use wharf_domain::instance::Progress;

impl Attempt<'_> {
    /// Waits for volumes that are being made, and gives up if one is of no use any more.
    pub async fn usable_volumes(&mut self) -> Result<(), NextAttempt> {
        match self.app.db.read(|rows| usable(rows, self.instance.id))? {
            Usable::Yes => Ok(()),
            // A volume has a deadline of its own, and its content may take long.
            Usable::Soon | Usable::Copied(_) => {
                let now = Instant::now();
                self.history.stand_still(now, now + FIRST_PAUSE);
                Err(NextAttempt::After(FIRST_PAUSE))
            }
            Usable::No(name) => {
                let why = format!("volume {name} is in the state error");
                Err(self.give_up(&why).await)
            }
        }
    }

    /// Waits or gives up as [`Self::usable_volumes`] does, unless the instance is up: what has lost a volume
    /// goes on without it.
    pub async fn startable(&mut self) -> Result<(), NextAttempt> {
        let usable = self.app.db.read(|rows| usable(rows, self.instance.id))?;
        if matches!(usable, Usable::Yes) {
            return Ok(());
        }
        let (tag, generation) = (self.target.tag, self.target.generation);
        match self.driver.inspect(tag, generation).await {
            Ok(DriverReport {
                phase: Phase::Booting | Phase::Ready,
                ..
            }) => Ok(()),
            Ok(_) | Err(PluginError::NotFound) => self.usable_volumes().await,
            Err(error) => Err(error.into()),
        }
    }

    /// Gives an existing instance its volumes, if a request has changed them.
    pub async fn set_volumes(&mut self) -> Result<(), NextAttempt> {
        if !self
            .app
            .db
            .read(|rows| has_changes(rows, self.instance.id))?
        {
            return Ok(());
        }
        let taken = match self.driver.set_volumes(&self.target).await {
            Ok(()) => {
                self.believe().await?;
                true
            }
            Err(error) if refuses(&error) => {
                self.believe_failure().await?;
                tracing::warn!(node = %self.instance.node, %error, "the volumes cannot be changed");
                false
            }
            Err(error) => return Err(error.into()),
        };
        Err(self.writer.volumes_set(taken).await.into())
    }
}

impl ObservationWriter {
    /// The node has the volumes of the row, or it has refused the change of them.
    async fn volumes_set(&self, taken: bool) -> Result<bool, Error> {
        self.on_row(move |mut row, view| {
            let id = row.id;
            // A stopped instance has nothing else to do.
            let claim = view.rows.claim(id)?;
            let restores = view.rows.get(&RESTORES, id)?.is_some();
            if claim.is_some_and(|claim| !claim.compute) && !restores {
                row.progress = Progress::Settled;
            }
            let mut changes = Changes::none().put_instance(row);
            for (volume, mount) in rows_of(view.rows, id)? {
                let key = (id, volume);
                let is_kept = match (mount.progress, taken) {
                    (MountProgress::Attached, _) => continue,
                    (MountProgress::Attaching, taken) => taken,
                    (MountProgress::Detaching, taken) => !taken,
                };
                let known = view.rows.get(&VOLUMES, volume)?;
                if let (true, Some(known)) = (taken, known) {
                    let what = if is_kept {
                        attached(&known, &mount)
                    } else {
                        EventKind::VolumeDetached {
                            volume,
                            name: known.name.to_string(),
                        }
                    };
                    let row = changes.instance()?;
                    changes = changes.record(row, view.now, what);
                }
                let progress = MountProgress::Attached;
                let kept = is_kept.then_some(MountRow { progress, ..mount });
                changes = changes.set(&MOUNTS, key, kept);
            }
            Ok(changes)
        })
        .await
    }
}

/// Whether an error of a change says that the engine is as before. After any other one the engine may have the
/// change, so the right to a volume is not free.
fn refuses(error: &PluginError) -> bool {
    match error {
        PluginError::Invalid { .. }
        | PluginError::NotFound
        | PluginError::Conflict(_)
        | PluginError::Insufficient(_)
        | PluginError::Unsupported(_)
        | PluginError::Other(_) => true,
        PluginError::Unreachable(_)
        | PluginError::RetryLater(_)
        | PluginError::Fault(_)
        | PluginError::Busy => false,
    }
}

#[cfg(test)]
mod tests {
    use super::refuses;
    use wharf_domain::driver::PluginError;

    #[test]
    fn a_fault_is_no_refusal() {
        assert!(!refuses(&PluginError::Fault("no answer".to_owned())));
        assert!(refuses(&PluginError::Other("in use".to_owned())));
    }
}

//! The volumes of an instance on its node: whether they are usable, and changes of them on an engine that can
//! attach volumes late.

use super::attempt::{Attempt, FIRST_PAUSE, NextAttempt};
use super::writer::ObservationWriter;
use crate::volumes::{MOUNTS, MountProgress, MountRow, Usable, attached, rows_of, usable};
use wharf_db::{Changes, Read as _, Rows as _, VOLUMES};
use wharf_domain::driver::PluginError;
use wharf_domain::error::Error;
use wharf_domain::event::EventKind;
use wharf_domain::instance::Progress;

impl Attempt<'_> {
    /// Waits for volumes that are being made, and gives up if one is of no use any more.
    pub async fn usable_volumes(&self) -> Result<(), NextAttempt> {
        match self.app.db.read(|rows| usable(rows, self.instance.id))? {
            Usable::Yes => Ok(()),
            Usable::Soon => Err(NextAttempt::After(FIRST_PAUSE)),
            Usable::No(name) => {
                let why = format!("volume {name} is in the state error");
                Err(self.give_up(&why).await)
            }
        }
    }

    /// Gives an existing instance its volumes, if a request has changed them.
    pub async fn set_volumes(&self) -> Result<(), NextAttempt> {
        let mounts = self.app.db.read(|rows| rows_of(rows, self.instance.id))?;
        let is_settled = |mount: &MountRow| mount.progress == MountProgress::Attached;
        if mounts.iter().all(|(_, mount)| is_settled(mount)) {
            return Ok(());
        }
        let taken = match self.driver.set_volumes(&self.target).await {
            Ok(()) => true,
            Err(error @ (PluginError::Unreachable(_) | PluginError::Busy)) => {
                return Err(error.into());
            }
            Err(later @ PluginError::RetryLater(_)) => return Err(later.into()),
            Err(error) => {
                self.confirm().await?;
                tracing::warn!(node = %self.instance.node, %error, "the volumes cannot be changed");
                false
            }
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
            if claim.is_some_and(|claim| !claim.compute) {
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

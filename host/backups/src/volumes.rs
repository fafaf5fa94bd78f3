//! `POST` of a backup of a volume. Where the engine copies a volume at rest, nothing may write it until the end.

use crate::create::{audited, refuse_more};
use crate::plan::run_time;
use crate::rows::{BACKUPS, backups_of, bucket};
use crate::{BackupView, Backups};
use std::collections::BTreeMap;
use wharf_accounts::recent_sign_in::require_access;
use wharf_db::{Changes, Rows, VOLUMES, View};
use wharf_domain::backup::{
    BackedUp, Backup, BackupEvent, BackupOf, BackupState, BackupTask, BackupWork,
};
use wharf_domain::driver::VolumeContent;
use wharf_domain::error::Error;
use wharf_domain::ids::{BackupId, BucketId, NodeId, UserId, VolumeId};
use wharf_domain::kept::{KeptEvent, KeptStatus};
use wharf_domain::volume::{OfVolume, Volume, VolumeCopy};
use wharf_ground::caller::Caller;
use wharf_instances::KeptUse as _;
use wharf_instances::volumes::refuse_writers;

/// The inputs of a decision about a new backup, beside the rows.
pub struct Making {
    id: BackupId,
    /// The nodes that send volumes, with the kinds of their engines.
    nodes: BTreeMap<NodeId, (String, VolumeContent)>,
}

impl Making {
    /// Fails unless the engine of a volume makes backups.
    pub(crate) fn check(&self, of: &Volume) -> Result<(), Error> {
        self.engine(of).map(|_| ())
    }

    fn engine(&self, of: &Volume) -> Result<&(String, VolumeContent), Error> {
        self.nodes.get(&of.node).ok_or(Error::NotApplicable(
            "the engine of this volume makes no backups of volumes",
        ))
    }

    /// Decides about a backup, by hand or by a plan: a row, an event, and the volume's part in it.
    pub(crate) fn make(
        &self,
        view: &View<'_>,
        mut of: Volume,
        bucket: BucketId,
        is_planned: bool,
    ) -> Result<(Backup, Changes), Error> {
        let (id, owner) = (self.id, of.owner);
        let others = backups_of(view.rows, owner)?;
        refuse_more(&others)?;
        let (engine_kind, content) = self.engine(&of)?;
        if of.status() != KeptStatus::Ready {
            let state = of.status().as_str();
            return Err(Error::Refused(format!(
                "the state of the volume is {state}"
            )));
        }
        if let Some(copy) = of.of.copy {
            let backup = copy.backup;
            return Err(Error::Refused(format!(
                "backup {backup} of this volume is running; wait for its end, or delete it"
            )));
        }
        let at_rest = *content == VolumeContent::AtRest;
        if at_rest {
            refuse_writers(view.rows, &of)?;
        }
        of.of.copy = Some(VolumeCopy {
            backup: id,
            at_rest,
        });
        let backup = Backup {
            id,
            owner,
            bucket,
            of: BackedUp {
                what: BackupOf::Volume {
                    id: of.id,
                    size_gib: of.size_gib,
                },
                name: of.name.clone(),
                cpu_tier: of.cpu_tier,
                engine_kind: engine_kind.clone(),
            },
            created_at: view.system,
            state: BackupState::Running(None),
            work: Some(BackupWork::new(BackupTask::Send, view.now)),
            reason: None,
            verified_at: None,
            planned: is_planned.then(|| run_time(view, &others, of.id.into())),
        };
        let what = if is_planned {
            BackupEvent::Planned
        } else {
            BackupEvent::Created
        };
        let changes = Changes::none()
            .put(&BACKUPS, (owner, id), backup.clone())
            .record_kept(of, view.now, KeptEvent::Backup(what));
        Ok((backup, changes))
    }
}

impl Backups {
    pub(crate) fn making_of_volumes(&self) -> Result<Making, Error> {
        Ok(Making {
            id: BackupId(self.random.id(self.clock.system())?),
            nodes: self.app.volume_nodes(),
        })
    }

    /// Accepts a backup of one of the caller's volumes.
    pub async fn create_of_volume(
        &self,
        caller: &Caller,
        volume: &str,
        into: &str,
    ) -> Result<BackupView, Error> {
        // Right after a start, the features of the nodes are not known yet.
        self.app.volume_nodes_seen().await;
        let making = self.making_of_volumes()?;
        let (by, named, into) = (caller.clone(), volume.to_owned(), into.to_owned());
        let written = self.db.write(move |view| {
            require_access(view, &by)?;
            let bucket = bucket(view.rows, by.user, &into)?;
            let volume = OfVolume::own(view.rows, by.user, &named)?;
            let (backup, changes) = making.make(view, volume, bucket.id, false)?;
            let audited = audited(view, &by, "backup.create", &backup, "running");
            Ok((backup.id, changes.by(&by.origin()).with(audited)))
        });
        let id = written.await?;
        self.work.notify_one();
        self.get(caller, id)
    }
}

/// The id of one of a user's volumes. One that was deleted is named by its id.
pub(crate) fn id(rows: &impl Rows, owner: UserId, named: &str) -> Result<VolumeId, Error> {
    match VolumeId::parse(named) {
        Some(id) => Ok(id),
        None => OfVolume::own(rows, owner, named).map(|volume| volume.id),
    }
}

/// The changes with the end of a backup: its volume may be written again, and has an event.
pub(crate) fn release(
    view: &View<'_>,
    volume: VolumeId,
    backup: BackupId,
    what: Option<BackupEvent>,
) -> Result<Changes, Error> {
    let Some(mut row) = view.rows.get(&VOLUMES, volume)? else {
        return Ok(Changes::none());
    };
    if row.of.copy.is_none_or(|copy| copy.backup != backup) {
        return Ok(Changes::none());
    }
    row.of.copy = None;
    Ok(match what {
        Some(what) => Changes::none().record_kept(row, view.now, KeptEvent::Backup(what)),
        None => Changes::none().put(&VOLUMES, volume, row),
    })
}

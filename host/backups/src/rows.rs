//! The rows of buckets and backups.

use crate::plan::check_plans;
use wharf_db::{Draft, Findings, INSTANCES, ReadRows, Rows, Table, VOLUMES, tables};
use wharf_domain::backup::{Backup, BackupPlan, BackupState, Bucket, InstanceBackup};
use wharf_domain::error::Error;
use wharf_domain::ids::{BackupId, BucketId, InstanceId, UserId, VolumeId};
use wharf_domain::instance::Instance;
use wharf_domain::volume::Volume;
use wharf_instances::plans::PlanRow;

/// The most buckets of a user.
pub const MAX_BUCKETS: usize = 20;
/// The most backups of a user.
pub const MAX_BACKUPS: usize = 1000;

const BUCKET: Error = Error::Missing("Bucket");
const BACKUP: Error = Error::Missing("Backup");

tables! {
    /// Buckets of a user.
    pub const BUCKETS: Table<UserId, BucketId, Bucket> =
        Table::bounded(b'w', 2, "20 of a user", "Until the user forgets it").wakes_user("buckets");
    /// Backups of a user.
    pub const BACKUPS: Table<UserId, BackupId, Backup> =
        Table::bounded(b'w', 5, "1000 of a user", "Until the user deletes it, or forgets its bucket")
            .wakes_user("backups")
            .checked(check);
    /// The plans of instances.
    pub const BACKUP_PLANS: Table<(), InstanceId, PlanRow<BackupPlan>> =
        Table::part_of(&INSTANCES, b'x', 11);
    /// The plans of volumes.
    pub const VOLUME_BACKUP_PLANS: Table<(), VolumeId, PlanRow<BackupPlan>> =
        Table::part_of(&VOLUMES, b'x', 12);
}

/// Backups as they were until format 11, all of them of instances.
const BACKUPS_11: Table<UserId, BackupId, InstanceBackup> = Table::bounded(b'w', 3, "", "");

/// Gives backups the form that those of volumes fit into.
pub fn admit_volumes(rows: &mut Draft<'_>) -> Result<(), Error> {
    let mut found = Vec::new();
    for row in rows.all(&BACKUPS_11)? {
        match row {
            Ok((_, _, backup)) => found.push(backup),
            Err(error) => tracing::error!(error = %error.chain(), "a backup cannot be read"),
        }
    }
    for old in found {
        rows.remove(&BACKUPS_11, (old.owner, old.id))?;
        let backup = Backup::from(old);
        rows.put(&BACKUPS, (backup.owner, backup.id), &backup)?;
    }
    Ok(())
}

/// The buckets of a user.
pub fn buckets_of(rows: &impl Rows, owner: UserId) -> Result<Vec<Bucket>, Error> {
    rows.under(&BUCKETS, &owner)?
        .map(|row| row.map(|(_, bucket)| bucket))
        .collect()
}

/// The bucket of a user with this id or name.
pub fn bucket(rows: &impl Rows, owner: UserId, named: &str) -> Result<Bucket, Error> {
    let id = BucketId::parse(named);
    let is_named = |bucket: &Bucket| Some(bucket.id) == id || bucket.name.as_str() == named;
    let found = buckets_of(rows, owner)?.into_iter().find(is_named);
    found.ok_or(BUCKET)
}

/// The backups of a user, those that are being deleted included.
pub fn backups_of(rows: &impl Rows, owner: UserId) -> Result<Vec<Backup>, Error> {
    rows.under(&BACKUPS, &owner)?
        .map(|row| row.map(|(_, backup)| backup))
        .collect()
}

/// A backup of a user.
pub fn backup(rows: &impl Rows, owner: UserId, id: BackupId) -> Result<Backup, Error> {
    let found = rows.get(&BACKUPS, (owner, id))?;
    found.filter(|backup| !backup.is_deleted()).ok_or(BACKUP)
}

/// The newest complete backup of an instance, or the one with this id.
pub fn complete(
    rows: &impl Rows,
    of: &Instance,
    wanted: Option<BackupId>,
) -> Result<Option<Backup>, Error> {
    newest(rows, of.owner, |backup| {
        backup.of.instance() == Some(of.id) && wanted.is_none_or(|id| id == backup.id)
    })
}

/// The newest complete backup of a volume.
pub fn complete_of_volume(rows: &impl Rows, of: &Volume) -> Result<Option<Backup>, Error> {
    newest(rows, of.owner, |backup| backup.of.volume() == Some(of.id))
}

fn newest(
    rows: &impl Rows,
    owner: UserId,
    is_wanted: impl Fn(&Backup) -> bool,
) -> Result<Option<Backup>, Error> {
    let found = backups_of(rows, owner)?.into_iter();
    let complete = found.filter(|backup| backup.stored().is_some() && !backup.is_deleted());
    let wanted = complete.filter(is_wanted);
    Ok(wanted.max_by_key(|backup| (backup.created_at, backup.id)))
}

/// Each backup and each plan has its bucket, and each volume that is copied has its backup.
fn check(rows: &ReadRows, wrong: &mut Findings) -> Result<(), Error> {
    for row in rows.all(&BACKUPS)? {
        let Ok((owner, id, backup)) = row else {
            continue;
        };
        if rows.get(&BUCKETS, (owner, backup.bucket))?.is_none() {
            wrong.push(format!("backup {id}: its bucket does not exist"));
        }
    }
    for row in rows.all(&VOLUMES)? {
        let Ok((id, (), volume)) = row else {
            continue;
        };
        let Some(copy) = volume.of.copy else {
            continue;
        };
        let backup = rows.get(&BACKUPS, (volume.owner, copy.backup))?;
        if !backup.is_some_and(|backup| matches!(backup.state, BackupState::Running(_))) {
            wrong.push(format!(
                "volume {id}: its backup {} does not run",
                copy.backup
            ));
        }
    }
    check_plans::<Instance>(rows, wrong)?;
    check_plans::<Volume>(rows, wrong)
}

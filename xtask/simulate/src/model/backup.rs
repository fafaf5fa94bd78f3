//! Buckets, backups, their plans, and the instances that are made from backups.

use super::{Ask, Look, Model, Wrong, check, failed};
use crate::sim::OFTEN;
use crate::world::{Disk, Truth};
use std::collections::{BTreeMap, BTreeSet};
use wharf_backups::{BACKUP_PLANS, BACKUPS, BUCKETS};
use wharf_db::{Rows as _, SNAPSHOTS};
use wharf_domain::backup::{Backup, BackupState, Bucket};
use wharf_domain::ids::{BackupId, BucketId, InstanceId, SnapshotId};
use wharf_instances::content::CONTENT;

/// The buckets and backups at the last look.
#[derive(Debug, Clone, Default)]
pub struct Backups {
    buckets: BTreeMap<BucketId, Bucket>,
    rows: BTreeMap<BackupId, Backup>,
    /// The number of backups that the plan of an instance keeps.
    plans: BTreeMap<InstanceId, usize>,
    /// The content of each backup that ever ran, once its snapshot was complete.
    content: BTreeMap<BackupId, Disk>,
    /// The snapshots that were ever taken for backups.
    snapshots: BTreeMap<SnapshotId, BackupId>,
    /// The backups of the file of an earlier moment. Wharf has done more with them than it knows.
    aged: BTreeSet<BackupId>,
}

/// The present rows.
struct Found {
    buckets: BTreeMap<BucketId, Bucket>,
    rows: BTreeMap<BackupId, Backup>,
    plans: BTreeMap<InstanceId, usize>,
    /// The instances that are made from backups.
    restored: BTreeMap<InstanceId, BackupId>,
    /// The snapshots that are not deleted.
    snapshots: BTreeSet<SnapshotId>,
}

fn found(look: &Look<'_>) -> Result<Found, Wrong> {
    let read = look.app.db().read(|rows| {
        let mut found = Found {
            buckets: BTreeMap::new(),
            rows: BTreeMap::new(),
            plans: BTreeMap::new(),
            restored: BTreeMap::new(),
            snapshots: BTreeSet::new(),
        };
        for row in rows.all(&BUCKETS)? {
            let (_, id, bucket) = row?;
            found.buckets.insert(id, bucket);
        }
        for row in rows.all(&BACKUPS)? {
            let (_, id, backup) = row?;
            found.rows.insert(id, backup);
        }
        for row in rows.under(&BACKUP_PLANS, &())? {
            let (id, plan) = row?;
            found.plans.insert(id, plan.request.times.keep as usize);
        }
        for row in rows.under(&CONTENT, &())? {
            let (id, content) = row?;
            found.restored.insert(id, content.of.backup);
        }
        for row in rows.all(&SNAPSHOTS)? {
            let (id, (), snapshot) = row?;
            found.snapshots.extend((!snapshot.deleted).then_some(id));
        }
        Ok(found)
    });
    read.map_err(|error| failed(&error))
}

/// The snapshot of a backup that runs.
fn running(backup: &Backup) -> Option<SnapshotId> {
    match backup.state {
        BackupState::Running(snapshot) if !backup.is_deleted() => snapshot,
        _ => None,
    }
}

impl Backups {
    /// Whether a snapshot was taken for a backup.
    pub fn has(&self, snapshot: SnapshotId) -> bool {
        self.snapshots.contains_key(&snapshot)
    }

    /// Whether a snapshot was taken for a backup that has ended.
    pub fn have_done_with(&self, snapshot: SnapshotId) -> bool {
        let backup = self.snapshots.get(&snapshot).map(|id| self.rows.get(id));
        backup.is_some_and(|backup| backup.and_then(running).is_none())
    }

    /// Whether a backup is deleted, or was.
    pub fn is_deleted(&self, id: BackupId) -> bool {
        self.rows.get(&id).is_none_or(Backup::is_deleted)
    }

    /// The rows are those of an earlier moment.
    pub fn are_older(&mut self) {
        self.aged.extend(self.rows.keys());
    }

    /// Whether the store has what it should of a backup, whatever it should be.
    fn is_unsure(&self, backup: &Backup, truth: &Truth<'_>) -> bool {
        let bucket = self.buckets.get(&backup.bucket);
        self.aged.contains(&backup.id)
            || bucket.is_none_or(|bucket| {
                truth.is_spoiled(&bucket.address.bucket, &backup.id.to_string())
            })
    }

    /// The content of a complete backup in its bucket.
    fn stored(&self, backup: &Backup, truth: &Truth<'_>) -> Option<Disk> {
        let bucket = self.buckets.get(&backup.bucket)?;
        truth.backup(&bucket.address.bucket, &backup.id.to_string())
    }
}

impl Model {
    /// Looks at all backups. The look at snapshots comes after it, and forgets the content of those that are gone.
    pub(super) fn look_at_backups(&mut self, look: &Look<'_>) -> Result<(), Wrong> {
        let found = found(look)?;
        self.explain_plans_of(&self.backups.plans, &found.plans, Ask::PlanBackups)?;
        self.backups.plans.clone_from(&found.plans);
        for (id, backup) in &self.backups.rows {
            if let BackupState::Running(Some(snapshot)) = backup.state
                && let Some(content) = self.copies.content.get(&snapshot)
            {
                self.backups.content.insert(*id, content.clone());
            }
        }
        look.world.truth(|truth| {
            for (id, before) in &self.backups.rows {
                let row = found.rows.get(id);
                let explained = self.explain_backup(before, row, &found, truth);
                explained.map_err(|why| format!("backup {id}: {why}"))?;
            }
            Ok::<_, Wrong>(())
        })?;
        for (id, row) in &found.rows {
            let is_new = !self.backups.rows.contains_key(id);
            check(!is_new || self.is_backup_asked_for(row), || {
                format!("backup {id}: it is new, and nobody asked for it")
            })?;
            if let Some(snapshot) = running(row) {
                self.backups.snapshots.insert(snapshot, *id);
            }
        }
        self.explain_buckets(&found)?;
        self.backups.buckets = found.buckets;
        self.backups.rows = found.rows;
        look.world.truth(|truth| {
            self.check_stored(truth)?;
            self.check_restored(&found.restored, truth)
        })
    }

    fn is_backup_asked_for(&self, row: &Backup) -> bool {
        // Volumes have no backups in this world.
        let Some(of) = row.of.instance() else {
            return false;
        };
        match (&row.state, row.planned) {
            (BackupState::Running(_), None) => self.is_asked(|asked| *asked == Ask::BackUp(of)),
            (BackupState::Running(_), Some(_)) => self.backups.plans.contains_key(&of),
            // The bucket has it already.
            (BackupState::Done(_), None) => {
                self.is_asked(|asked| *asked == Ask::AddBucket(row.owner))
            }
            _ => false,
        }
    }

    fn explain_buckets(&self, found: &Found) -> Result<(), Wrong> {
        for (id, bucket) in &found.buckets {
            let is_known = self.backups.buckets.get(id) == Some(bucket);
            let add = Ask::AddBucket(bucket.owner);
            check(is_known || self.is_asked(|asked| *asked == add), || {
                format!("bucket {id}: nobody asked for it")
            })?;
        }
        for (id, bucket) in &self.backups.buckets {
            let is_there = found.buckets.contains_key(id);
            let forget = Ask::ForgetBucket(bucket.owner);
            check(is_there || self.is_asked(|asked| *asked == forget), || {
                format!("bucket {id}: it is gone, and nobody asked for it")
            })?;
        }
        Ok(())
    }

    fn explain_backup(
        &self,
        before: &Backup,
        row: Option<&Backup>,
        found: &Found,
        truth: &Truth<'_>,
    ) -> Result<(), Wrong> {
        let has_ended = row.is_none_or(|row| running(row).is_none());
        let left = running(before).filter(|id| has_ended && found.snapshots.contains(id));
        check(left.is_none(), || "its snapshot stays".to_owned())?;
        let Some(row) = row else {
            if !found.buckets.contains_key(&before.bucket) {
                return Ok(());
            }
            let asked = before.is_deleted() || self.may_backup_end(before, found);
            check(asked, || {
                "its row is gone, and nobody deleted it".to_owned()
            })?;
            let is_there = self.backups.stored(before, truth).is_some();
            return check(!is_there || self.backups.is_unsure(before, truth), || {
                "its row is gone, and its bucket has it".to_owned()
            });
        };
        let is_kept = (before.owner, before.bucket, &before.of) == (row.owner, row.bucket, &row.of)
            && (before.created_at, before.planned) == (row.created_at, row.planned);
        check(is_kept, || {
            "its owner, bucket, instance or time changed".to_owned()
        })?;
        let is_next = before.state == row.state || matches!(before.state, BackupState::Running(_));
        check(is_next, || {
            format!("it is {} after {}", row.state_word(), before.state_word())
        })?;
        let explained = before.is_deleted() == row.is_deleted() || self.may_backup_end(row, found);
        check(explained && before.is_deleted() <= row.is_deleted(), || {
            "it is deleted, and nobody asked for it".to_owned()
        })
    }

    /// Whether a request explains the end of a backup, or a plan that has as many newer ones as it keeps. Of those that
    /// failed, the newest stays.
    fn may_backup_end(&self, row: &Backup, found: &Found) -> bool {
        let asked = self.is_asked(|asked| *asked == Ask::DeleteBackup(row.id));
        let of_plan = |other: &&Backup| {
            let was_deleted = self
                .backups
                .rows
                .get(&other.id)
                .is_some_and(Backup::is_deleted);
            other.of.instance() == row.of.instance() && other.planned > row.planned && !was_deleted
        };
        let count = |fits: fn(&Backup) -> bool| {
            let newer = found.rows.values().filter(of_plan);
            newer.filter(|other| fits(other)).count()
        };
        let has_failed = |row: &Backup| row.state == BackupState::Failed;
        let of = row.of.instance();
        let keep = of.and_then(|of| self.backups.plans.get(&of)).copied();
        let surplus = row.planned.is_some()
            && if has_failed(row) {
                count(has_failed) > 0
            } else {
                keep.is_some_and(|keep| count(|row| row.stored().is_some()) >= keep)
            };
        asked || surplus
    }

    /// A backup that is done is in its bucket, with the content of its snapshot.
    fn check_stored(&self, truth: &Truth<'_>) -> Result<(), Wrong> {
        let rows = self.backups.rows.values();
        for row in rows.filter(|row| row.stored().is_some() && !row.is_deleted()) {
            if self.backups.is_unsure(row, truth) {
                continue;
            }
            let Some(stored) = self.backups.stored(row, truth) else {
                return Err(format!(
                    "backup {}: it is done, and not in its bucket",
                    row.id
                ));
            };
            let content = self.backups.content.get(&row.id);
            check(content.is_none_or(|content| *content == stored), || {
                format!("backup {}: it has not the content of its snapshot", row.id)
            })?;
        }
        Ok(())
    }

    /// An instance that is made from a backup of its owner has its content once it is up.
    fn check_restored(
        &self,
        restored: &BTreeMap<InstanceId, BackupId>,
        truth: &Truth<'_>,
    ) -> Result<(), Wrong> {
        for (id, backup) in restored {
            let Some(known) = self.instances.get(id) else {
                continue;
            };
            let of = self.backups.rows.get(backup);
            check(of.is_none_or(|of| of.owner == known.row.owner), || {
                format!("{id}: it is made from backup {backup} of another user")
            })?;
            let key = (*id, known.row.incarnation);
            let is_unsure = self.aged.contains(id) || truth.ever_came_late(key);
            let content = self.backups.content.get(backup);
            let Some(content) = content.filter(|_| known.is_up() && !is_unsure) else {
                continue;
            };
            let mut machines = truth.machines_of(*id);
            let machine = machines
                .find(|(node, found, _)| *found == key && **node == known.row.node)
                .map(|(.., machine)| machine);
            let has_it = machine.is_none_or(|machine| machine.disk.starts_with(content));
            check(has_it, || {
                format!("{id}: its disk has not the content of backup {backup}")
            })?;
        }
        Ok(())
    }

    /// Checks, once there are no faults, that all work on backups is done.
    pub(super) fn backups_settled(&self, truth: &Truth<'_>) -> Result<(), Wrong> {
        let rows = self.backups.rows.iter();
        for (id, row) in rows.filter(|(id, _)| !self.backups.aged.contains(id)) {
            let is_pending = row.work.is_some_and(|work| work.failed < OFTEN);
            check(!is_pending, || {
                format!("backup {id}: {:?} does not end", row.work)
            })?;
            let bucket = self.backups.buckets.get(&row.bucket);
            let place = bucket.map(|bucket| (bucket.address.bucket.clone(), id.to_string()));
            let is_left = truth.uploads().any(|upload| Some(upload) == place.as_ref());
            check(!is_left || row.stored().is_none(), || {
                format!("backup {id}: an upload of it is left")
            })?;
        }
        Ok(())
    }
}

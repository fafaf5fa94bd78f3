//! The rows of restores, clones and plans.

use crate::plans::PlanRow;
use crate::volumes::has_mounts;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use wharf_db::{
    Findings, INSTANCES, Read as _, ReadRows, Rows, SNAPSHOTS, SNAPSHOTS_OF, Table, tables,
};
use wharf_domain::driver::{Source, Tag};
use wharf_domain::error::Error;
use wharf_domain::ids::{InstanceId, SnapshotId};
use wharf_domain::instance::{Instance, Intent};
use wharf_domain::snapshot::{PlanRequest, Snapshot};

tables! {
    /// Restores under way.
    pub const RESTORES: Table<(), InstanceId, RestoreRow> = Table::part_of(&INSTANCES, b'x', 7)
        .checked(check);
    /// The snapshots that the disks of instances were made from.
    pub const SOURCES: Table<InstanceId, (), SourceRow> =
        Table::bounded(b'd', 4, "One row of an instance", "With their instance")
            .removed_with(&INSTANCES)
            .indexed(|id, (), row, entries| entries.put(&SOURCED, (row.snapshot, *id), &()));
    /// The instances whose disks were made from a snapshot.
    pub const SOURCED: Table<SnapshotId, InstanceId, ()> = Table::index_of(&SOURCES, b'd', 5);
    /// The plans of instances.
    pub const SNAPSHOT_PLANS: Table<(), InstanceId, PlanRow<PlanRequest>> =
        Table::part_of(&INSTANCES, b'x', 8);
}

/// A restore of a stopped instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreRow {
    pub snapshot: SnapshotId,
    /// The snapshot of the present disk that is taken before.
    pub first: Option<SnapshotId>,
}

/// The snapshot that a disk was made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceRow {
    pub snapshot: SnapshotId,
    /// The instance that the snapshot is of, and its incarnation then.
    pub instance: InstanceId,
    pub incarnation: u64,
}

impl SourceRow {
    /// The source as drivers know it.
    pub(crate) fn driver_source(&self) -> Source {
        let instance = Tag {
            instance: self.instance,
            incarnation: self.incarnation,
        };
        Source {
            snapshot: self.snapshot,
            instance,
        }
    }
}

impl From<&Snapshot> for SourceRow {
    fn from(snapshot: &Snapshot) -> Self {
        Self {
            snapshot: snapshot.id,
            instance: snapshot.of.instance,
            incarnation: snapshot.of.incarnation,
        }
    }
}

/// The snapshots of an instance, deleted ones included.
pub(crate) fn snapshots_of(rows: &impl Rows, id: InstanceId) -> Result<Vec<Snapshot>, Error> {
    let mut found = Vec::new();
    for snapshot in rows.keys_under(&SNAPSHOTS_OF, &id)? {
        found.extend(rows.get(&SNAPSHOTS, snapshot?)?);
    }
    Ok(found)
}

/// Whether an instance cannot leave its node, because volumes or snapshots of it are there.
pub fn is_bound(rows: &impl Rows, instance: &Instance) -> Result<bool, Error> {
    let here = |snapshot: &Snapshot| snapshot.node == instance.node && !snapshot.is_lost();
    Ok(has_mounts(rows, instance.id)? || snapshots_of(rows, instance.id)?.iter().any(here))
}

/// Whether an instance that is being made needs the snapshot, which then stays on its node. One that the operator
/// has suspended is not made any more.
pub(crate) fn is_needed(rows: &impl Rows, snapshot: SnapshotId) -> Result<bool, Error> {
    for id in rows.keys_under(&SOURCED, &snapshot)? {
        let waits = rows
            .get(&INSTANCES, id?)?
            .is_some_and(|row| !row.provisioned && !row.failed && row.intent == Intent::Run);
        if waits {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether an instance that is not made yet needs a snapshot of this one.
pub(crate) fn has_needed(rows: &impl Rows, id: InstanceId) -> Result<bool, Error> {
    for snapshot in rows.keys_under(&SNAPSHOTS_OF, &id)? {
        if is_needed(rows, snapshot?)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Fails while the disk of an instance is being restored.
pub(crate) fn refuse_restoring(rows: &impl Rows, id: InstanceId) -> Result<(), Error> {
    match rows.get(&RESTORES, id)? {
        Some(_) => Err(Error::NotApplicable(
            "the disk of the instance is being restored; try again when that is done",
        )),
        None => Ok(()),
    }
}

/// Each restore is of a stopped instance, from a snapshot of it. Each snapshot that is not deleted has its
/// instance, with which it shares the node unless that was lost, and a name of its own.
fn check(rows: &ReadRows, findings: &mut Findings) -> Result<(), Error> {
    let mut names = BTreeSet::new();
    for row in rows.all(&SNAPSHOTS)? {
        let Ok((id, (), row)) = row else {
            continue;
        };
        if row.deleted {
            continue;
        }
        let Ok(instance) = rows.instance(row.of.instance) else {
            continue;
        };
        match instance.filter(|instance| instance.intent != Intent::Delete) {
            None => findings.push(format!("snapshot {id}: its instance does not exist")),
            Some(instance) if instance.owner != row.owner => {
                findings.push(format!("snapshot {id}: its instance is another user's"));
            }
            Some(instance) if instance.node != row.node && !row.is_lost() => {
                findings.push(format!("snapshot {id}: its instance is on another node"));
            }
            Some(_) => {}
        }
        if !names.insert((row.of.instance, row.name.as_str().to_owned())) {
            findings.push(format!(
                "snapshot {id}: another one of its instance has its name"
            ));
        }
    }
    for row in rows.under(&RESTORES, &())? {
        let Ok((id, restore)) = row else {
            continue;
        };
        let (Ok(Some(instance)), Ok(snapshot)) =
            (rows.instance(id), rows.get(&SNAPSHOTS, restore.snapshot))
        else {
            continue;
        };
        match snapshot {
            _ if instance.intent == Intent::Delete => {}
            None => findings.push(format!("{id}: its disk is restored from no snapshot")),
            Some(row) if row.of.instance != id => {
                findings.push(format!(
                    "{id}: its disk is restored from one of another instance"
                ));
            }
            Some(row) if row.node != instance.node => {
                findings.push(format!("{id}: its disk is restored from another node"));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// A snapshot as drivers know it.
pub fn source_of(snapshot: &Snapshot) -> Source {
    SourceRow::from(snapshot).driver_source()
}

/// The tag of the instance that a snapshot is of.
pub(crate) fn tag(snapshot: &Snapshot) -> Tag {
    Tag {
        instance: snapshot.of.instance,
        incarnation: snapshot.of.incarnation,
    }
}

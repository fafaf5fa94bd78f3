//! The end of snapshots.

use super::rows::{RESTORES, snapshots_of};
use crate::kept;
use wharf_db::{Changes, Rows, SNAPSHOTS, View};
use wharf_domain::error::Error;
use wharf_domain::ids::{InstanceId, SnapshotId};
use wharf_domain::kept::KeptEvent;
use wharf_domain::snapshot::Snapshot;

/// Whether a restore under way needs the snapshot.
pub(crate) fn is_in_use(rows: &impl Rows, snapshot: &Snapshot) -> Result<bool, Error> {
    let restore = rows.get(&RESTORES, snapshot.of.instance)?;
    Ok(restore.is_some_and(|restore| {
        restore.snapshot == snapshot.id || restore.first == Some(snapshot.id)
    }))
}

/// Deletes a snapshot, if it is not deleted yet.
pub fn delete_one(view: &View<'_>, id: SnapshotId) -> Result<Changes, Error> {
    let snapshot = view.rows.get(&SNAPSHOTS, id)?;
    Ok(match snapshot.filter(|snapshot| !snapshot.deleted) {
        Some(snapshot) => kept::delete(snapshot, view.now, KeptEvent::Deleted),
        None => Changes::none(),
    })
}

/// Deletes all snapshots of an instance, which ends their billing.
pub fn delete_all(view: &View<'_>, id: InstanceId) -> Result<Changes, Error> {
    let living = snapshots_of(view.rows, id)?.into_iter();
    let living = living.filter(|snapshot| !snapshot.deleted);
    Ok(living.fold(Changes::none(), |changes, snapshot| {
        changes.with(kept::delete(snapshot, view.now, KeptEvent::Deleted))
    }))
}

//! `DELETE`: the snapshot disappears for its user at once. Its claim is released once the node no longer has it.

use super::SnapshotCondition;
use super::read::{own, view as view_of};
use super::rows::{RESTORES, snapshots_of};
use crate::{App, kept};
use wharf_db::{Changes, Rows, View};
use wharf_domain::error::Error;
use wharf_domain::ids::InstanceId;
use wharf_domain::kept::KeptEvent;
use wharf_domain::snapshot::Snapshot;
use wharf_ground::audit::record;
use wharf_ground::caller::Caller;

impl App {
    /// Deletes one of the caller's snapshots. Refuses while its instance is restored from it.
    pub async fn delete_snapshot(
        &self,
        caller: &Caller,
        named: &str,
        condition: &SnapshotCondition,
    ) -> Result<(), Error> {
        let (owner, named, origin) = (caller.user, named.to_owned(), caller.origin());
        let (condition, progress) = (condition.clone(), self.snapshot_progress.lock().clone());
        let decided = self.db.write_essential(move |view| {
            let snapshot = own(view.rows, owner, &named)?;
            let progress = progress.get(&snapshot.id).cloned();
            condition.check(|| view_of(view.rows, snapshot.clone(), progress))?;
            if is_in_use(view.rows, &snapshot)? {
                return Err(Error::Refused(format!(
                    "the disk of the instance is being restored from snapshot {}; try again later",
                    snapshot.name
                )));
            }
            let (node, name) = (snapshot.node.clone(), snapshot.name.to_string());
            let changes = kept::delete(snapshot, view.now, KeptEvent::Deleted).by(&origin);
            let operation = "snapshot.delete";
            let audited = record(view, &origin, operation, Some(owner), &name, "deleted");
            Ok((node, changes.with(audited)))
        });
        let node = decided.await?;
        self.nodes.work_on_snapshots(&node);
        Ok(())
    }
}

/// Whether a restore under way needs the snapshot.
pub(crate) fn is_in_use(rows: &impl Rows, snapshot: &Snapshot) -> Result<bool, Error> {
    let restore = rows.get(&RESTORES, snapshot.of.instance)?;
    Ok(restore.is_some_and(|restore| {
        restore.snapshot == snapshot.id || restore.first == Some(snapshot.id)
    }))
}

/// Deletes all snapshots of an instance, which ends their billing.
pub fn delete_all(view: &View<'_>, id: InstanceId) -> Result<Changes, Error> {
    let living = snapshots_of(view.rows, id)?.into_iter();
    let living = living.filter(|snapshot| !snapshot.deleted);
    Ok(living.fold(Changes::none(), |changes, snapshot| {
        changes.with(kept::delete(snapshot, view.now, KeptEvent::Deleted))
    }))
}

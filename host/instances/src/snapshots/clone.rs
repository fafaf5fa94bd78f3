//! `clone/`: the part of a creation that is about the snapshot from which the disk is made.

use super::read::{MISSING, own};
use crate::App;
use wharf_db::{Rows, SNAPSHOTS};
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::ids::{NodeId, SnapshotId};
use wharf_domain::kept::KeptStatus;
use wharf_domain::placement::PlacementRequest;
use wharf_domain::snapshot::Snapshot;
use wharf_ground::caller::Caller;

impl App {
    /// Returns one of the caller's snapshots whose flavor and CPU tier a clone has.
    pub fn clone_source(&self, caller: &Caller, named: &str) -> Result<Snapshot, Error> {
        self.db.read(|rows| own(rows, caller.user, named))
    }
}

/// Returns the snapshot, if the disk of such an instance can be made from it. Its volumes are on a node.
pub(crate) fn source(
    rows: &impl Rows,
    id: SnapshotId,
    request: &PlacementRequest,
    volumes: Option<NodeId>,
) -> Result<Snapshot, Error> {
    let snapshot = rows.get(&SNAPSHOTS, id)?;
    let snapshot = snapshot.filter(|row| row.owner == request.owner && !row.deleted);
    let snapshot = snapshot.ok_or(MISSING)?;
    let (name, least) = (&snapshot.name, snapshot.of.disk_size_gib);
    if snapshot.status() != KeptStatus::Ready {
        let status = snapshot.status().as_str();
        return Err(Error::Refused(format!(
            "the state of snapshot {name} is {status}"
        )));
    }
    if !snapshot.of.clonable {
        return Err(Error::Refused(format!(
            "snapshot {name} can be restored, and not cloned: the image of its flavor is too old"
        )));
    }
    if request.size.disk_size_gib < least {
        let message = format!("must be at least {least}, the disk of the snapshot");
        return Err(FieldErrors::one("disk_size_gib", message).into());
    }
    if volumes.is_some_and(|node| node != snapshot.node) {
        let message = "the volumes and the snapshot are on two hosts";
        return Err(FieldErrors::one("volumes", message).into());
    }
    Ok(snapshot)
}

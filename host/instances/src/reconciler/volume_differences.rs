//! The comparison of a node's list of volumes with the rows.

use std::collections::BTreeMap;
use wharf_db::{Read, Rows as _, Snapshot, VOLUMES, VOLUMES_ON};
use wharf_domain::driver::ObservedVolume;
use wharf_domain::error::Error;
use wharf_domain::ids::{InstanceId, NodeId, VolumeId};
use wharf_domain::volume::{VolumeFailure, VolumeStatus};

/// The differences between the rows and the list.
#[derive(Default)]
pub struct VolumeDifferences {
    /// Number of rows whose volume the node has had.
    pub rows: usize,
    /// Number of rows whose volume is listed.
    pub present: usize,
    /// Ready volumes that are not listed.
    pub missing: Vec<VolumeId>,
    /// Volumes in error, because they were missing, that are listed.
    pub returned: Vec<VolumeId>,
    /// Listed volumes whose row is gone.
    pub orphans: Vec<VolumeId>,
    /// Listed volumes that this database never had.
    pub unknown: Vec<VolumeId>,
}

impl VolumeDifferences {
    /// Whether nothing needs an action.
    pub fn is_empty(&self) -> bool {
        self.missing.is_empty()
            && self.returned.is_empty()
            && self.orphans.is_empty()
            && self.unknown.is_empty()
    }
}

/// Compares the rows with the list.
pub fn volume_differences(
    rows: &Snapshot,
    node: &NodeId,
    listed: &[ObservedVolume],
) -> Result<VolumeDifferences, Error> {
    let mut there: BTreeMap<VolumeId, &ObservedVolume> =
        listed.iter().map(|seen| (seen.volume, seen)).collect();
    let mut found = VolumeDifferences::default();
    for id in rows.keys_under(&VOLUMES_ON, &node.0)? {
        let id = id?;
        let is_listed = there.remove(&id).is_some();
        // A volume whose row is damaged is left alone.
        let Ok(Some(row)) = rows.get(&VOLUMES, id) else {
            continue;
        };
        found.rows += usize::from(row.made);
        found.present += usize::from(is_listed);
        match row.status() {
            VolumeStatus::Ready if !is_listed => found.missing.push(id),
            VolumeStatus::Error if is_listed && row.failure == Some(VolumeFailure::Missing) => {
                found.returned.push(id);
            }
            _ => {}
        }
    }
    for id in there.into_keys() {
        // A lost volume keeps its row, and what is left of it.
        if rows.get(&VOLUMES, id).is_ok_and(|row| row.is_none()) {
            match rows.was_made(InstanceId(id.0)) {
                Ok(true) => found.orphans.push(id),
                Ok(false) => found.unknown.push(id),
                Err(_) => {}
            }
        }
    }
    Ok(found)
}

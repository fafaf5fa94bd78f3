//! The comparison of a node's list of volumes with the rows.

use std::collections::BTreeMap;
use wharf_db::{Read, Rows as _, Snapshot, VOLUMES, VOLUMES_ON};
use wharf_domain::driver::{ObservedVolume, VolumeState};
use wharf_domain::error::Error;
use wharf_domain::ids::{InstanceId, NodeId, VolumeId};
use wharf_domain::volume::{VolumeFailure, VolumeStatus};

/// The differences between the rows and the list.
#[derive(Default)]
pub struct VolumeDifferences {
    /// Number of rows whose volume the node has had.
    pub rows: usize,
    /// Number of these rows whose volume the node has.
    pub present: usize,
    /// Ready volumes that the node does not have.
    pub missing: Vec<VolumeId>,
    /// Volumes that the node has had, and has in part. It completes them if it is asked again.
    pub incomplete: Vec<VolumeId>,
    /// Volumes in error, because they were missing, that the node has.
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
            && self.incomplete.is_empty()
            && self.returned.is_empty()
            && self.orphans.is_empty()
            && self.unknown.is_empty()
    }
}

/// Compares the rows with the list. Without a list the rows count, and nothing else is known.
pub fn volume_differences(
    rows: &Snapshot,
    node: &NodeId,
    listed: Option<&[ObservedVolume]>,
) -> Result<VolumeDifferences, Error> {
    let mut there: BTreeMap<VolumeId, &ObservedVolume> = listed
        .unwrap_or_default()
        .iter()
        .map(|seen| (seen.volume, seen))
        .collect();
    let mut found = VolumeDifferences::default();
    for id in rows.keys_under(&VOLUMES_ON, &node.0)? {
        let id = id?;
        let state = there.remove(&id).map(|seen| &seen.state);
        // A volume whose row is damaged is left alone.
        let Ok(Some(row)) = rows.get(&VOLUMES, id) else {
            continue;
        };
        found.rows += usize::from(row.made);
        if listed.is_none() {
            continue;
        }
        let is_there = matches!(state, Some(VolumeState::Ready | VolumeState::InUse));
        // The node may have been another one when it was asked to make a volume that it never was seen to have.
        found.present += usize::from(is_there && row.made);
        let is_missing = row.failure == Some(VolumeFailure::Missing);
        match row.status() {
            VolumeStatus::Ready if !is_there => found.missing.push(id),
            VolumeStatus::Error if is_there && is_missing => found.returned.push(id),
            _ => {}
        }
        let is_wanted = row.status() == VolumeStatus::Ready || is_missing && !row.deleted;
        if is_wanted && matches!(state, Some(VolumeState::Making(_))) {
            found.incomplete.push(id);
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

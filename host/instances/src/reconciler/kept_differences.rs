//! The comparison of a node's list of volumes or snapshots with the rows.

use super::on_node::OnNode;
use std::collections::BTreeMap;
use wharf_db::{Read as _, ReadRows, Rows as _};
use wharf_domain::driver::DiskState;
use wharf_domain::error::Error;
use wharf_domain::ids::NodeId;
use wharf_domain::kept::{KeptFailure, KeptStatus};

/// The differences between the rows and the list.
pub struct KeptDifferences<K: OnNode> {
    /// Number of rows whose data the node has had.
    pub rows: usize,
    /// Number of these rows whose data the node has.
    pub present: usize,
    /// Ready ones that the node does not have.
    pub missing: Vec<K::Id>,
    /// Those that the node has had, and has in part. It completes them if it is asked again.
    pub incomplete: Vec<K::Id>,
    /// Those in error, because they were missing, that the node has.
    pub returned: Vec<K::Id>,
    /// Listed ones whose row is gone, or that are given up.
    pub orphans: Vec<(K::Id, K::Whose)>,
    /// Listed ones that this database never had.
    pub unknown: Vec<K::Id>,
}

impl<K: OnNode> Default for KeptDifferences<K> {
    fn default() -> Self {
        Self {
            rows: 0,
            present: 0,
            missing: Vec::new(),
            incomplete: Vec::new(),
            returned: Vec::new(),
            orphans: Vec::new(),
            unknown: Vec::new(),
        }
    }
}

impl<K: OnNode> KeptDifferences<K> {
    /// Whether nothing needs an action.
    pub fn is_empty(&self) -> bool {
        self.missing.is_empty()
            && self.incomplete.is_empty()
            && self.returned.is_empty()
            && self.orphans.is_empty()
            && self.unknown.is_empty()
    }

    /// Leaves out what another list has not missed.
    pub fn also_missing_in(&mut self, before: &Self) {
        self.missing.retain(|id| before.missing.contains(id));
    }

    /// Compares the rows with the list. Without a list the rows count, and nothing else is known.
    pub fn of(rows: &ReadRows, node: &NodeId, listed: Option<&[K::Listed]>) -> Result<Self, Error> {
        let seen = listed.unwrap_or_default().iter().map(K::seen);
        let mut there: BTreeMap<_, _> = seen
            .map(|(id, whose, state)| (id, (whose, state)))
            .collect();
        let mut found = Self::default();
        for id in rows.keys_under(K::ON_NODE, &node.0)? {
            let id = id?;
            let state = there.remove(&id).map(|(_, state)| state);
            // One whose row is damaged is left alone.
            let Ok(Some(row)) = rows.get(K::ROWS, id) else {
                continue;
            };
            found.rows += usize::from(row.made);
            if listed.is_none() {
                continue;
            }
            let is_there = matches!(state, Some(DiskState::Ready(_) | DiskState::InUse));
            // The node may have been another one when it was asked to make one that it never was seen to have.
            found.present += usize::from(is_there && row.made);
            let is_missing = row.failure == Some(KeptFailure::Missing);
            match row.status() {
                KeptStatus::Ready if !is_there => found.missing.push(id),
                KeptStatus::Error if is_there && is_missing => found.returned.push(id),
                _ => {}
            }
            // A copy that was given up may have ended late. Nothing needs it.
            let is_given_up = K::IS_COPY && row.failure == Some(KeptFailure::NotMade);
            if is_given_up && !row.deleted && state.is_some() {
                found.orphans.push((id, K::whose(&row)));
            }
            let is_wanted = row.status() == KeptStatus::Ready || is_missing && !row.deleted;
            // A later copy would be of something else.
            if is_wanted && !K::IS_COPY && matches!(state, Some(DiskState::Making(_))) {
                found.incomplete.push(id);
            }
        }
        for (id, (whose, _)) in there {
            match rows.get(K::ROWS, id) {
                Ok(None) => match rows.was_made(id.into()) {
                    Ok(true) => found.orphans.push((id, whose)),
                    Ok(false) => found.unknown.push(id),
                    Err(_) => {}
                },
                // A lost volume or snapshot does not return with the machine, nor one that was made again elsewhere.
                Ok(Some(row)) => {
                    let was_lost = row.is_lost() && row.node == *node;
                    if was_lost || (!K::IS_COPY && row.node != *node) {
                        found.orphans.push((id, whose));
                    }
                }
                Err(_) => {}
            }
        }
        Ok(found)
    }
}

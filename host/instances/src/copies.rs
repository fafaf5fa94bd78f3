//! Moves of instances between nodes whose engines know nothing of each other: the new node copies the content.
//!
//! The copy has an incarnation of its own, which no other one has. The old disk goes once the copy is complete, and then
//! the instance is on the new node. A copy that a failed move has left is removed as an orphan.

use serde::{Deserialize, Serialize};
use wharf_db::{Changes, INSTANCES, Rows, Table, tables};
use wharf_domain::error::Error;
use wharf_domain::ids::{InstanceId, NodeId};
use wharf_domain::instance::Instance;
use wharf_domain::time::Timestamp;

tables! {
    /// The copies of instances that move, and those that failed moves may have left.
    pub const COPIES: Table<(), InstanceId, CopyRow> = Table::part_of(&INSTANCES, b'x', 9);
}

/// The copies of an instance on other nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyRow {
    /// The incarnation of the copy that the move under way makes; none without such a move.
    pub making: Option<u64>,
    /// That copy is complete. The old disk goes next, and may be gone.
    pub complete: bool,
    /// The nodes on which a failed move may have left a copy, with its incarnation.
    pub left: Vec<(NodeId, u64)>,
}

/// The copies of an instance.
pub fn copies(rows: &impl Rows, id: InstanceId) -> Result<CopyRow, Error> {
    Ok(rows.get(&COPIES, id)?.unwrap_or_default())
}

/// The write of the copies of an instance.
pub(super) fn put(changes: Changes, id: InstanceId, row: CopyRow) -> Changes {
    let is_empty = row == CopyRow::default();
    changes.set(&COPIES, id, (!is_empty).then_some(row))
}

/// Begins a copy. Its incarnation is the time, so that no copy of an earlier move has it.
pub(super) fn begin(row: CopyRow, instance: &Instance, now: Timestamp) -> CopyRow {
    let time = u64::try_from(now.0).unwrap_or_default();
    CopyRow {
        making: Some(time.max(instance.incarnation + 1)),
        complete: false,
        ..row
    }
}

/// Ends the move: the copy is the instance.
pub(super) fn keep(row: CopyRow) -> CopyRow {
    CopyRow {
        making: None,
        complete: false,
        ..row
    }
}

/// Ends a move: the copy on the node is left.
pub fn leave_on(
    changes: Changes,
    rows: &impl Rows,
    id: InstanceId,
    node: &NodeId,
) -> Result<Changes, Error> {
    Ok(put(changes, id, leave(copies(rows, id)?, node)))
}

fn leave(mut row: CopyRow, node: &NodeId) -> CopyRow {
    if let Some(incarnation) = row.making.take() {
        row.left.retain(|(left, _)| left != node);
        row.left.push((node.clone(), incarnation));
    }
    row.complete = false;
    row
}

/// Whether a failed move has left this incarnation on a node.
pub fn is_left(row: &CopyRow, node: &NodeId, incarnation: u64) -> bool {
    let mut left = row.left.iter();
    row.making != Some(incarnation) && left.any(|(left, last)| left == node && incarnation <= *last)
}

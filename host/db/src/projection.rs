//! State in memory that is derived from the claims and the open ports.

use super::rows::MoveRow;
use super::table::Snapshot;
use wharf_domain::capacity::Claim;
use wharf_domain::error::Error;
use wharf_domain::ids::{NodeId, UserId};

/// Follows the claims and the open ports of VMs. Use cases read free resources and ports from it. It is
/// ahead of the commits by the batch under way, and only the writer changes it.
pub trait Projection: Send {
    /// Derives the state from the committed rows.
    fn load(&mut self, rows: &Snapshot) -> Result<(), Error>;
    /// Follows a change of one claim. A new claim has no `before`, a removed one no `after`.
    fn change(&mut self, before: Option<&Claim>, after: Option<&Claim>);
    /// Follows a change of the number of open ports of an owner's VM.
    fn count_ports(&mut self, owner: UserId, before: usize, after: usize);
    /// Follows a change of the claim that a move reserves. It counts beside the instance's own claim, and
    /// not for its owner.
    fn reserve(&mut self, before: Option<&MoveRow>, after: Option<&MoveRow>);
    /// Follows the begin or the end of the drain of a node.
    fn drain(&mut self, node: &NodeId, drained: bool);
}

enum Change {
    Claim(Option<Claim>, Option<Claim>),
    Ports(UserId, usize, usize),
    Reserved(Option<MoveRow>, Option<MoveRow>),
    /// The earlier state.
    Drained(NodeId, bool),
}

/// A projection with the changes of the batch under way.
pub(super) struct Projected {
    projection: Box<dyn Projection>,
    changes: Vec<Change>,
}

impl Projected {
    pub fn new(projection: Box<dyn Projection>) -> Self {
        let changes = Vec::new();
        Self {
            projection,
            changes,
        }
    }

    /// Follows a change, which holds only once it is kept.
    pub fn change(&mut self, before: Option<Claim>, after: Option<Claim>) {
        self.projection.change(before.as_ref(), after.as_ref());
        self.changes.push(Change::Claim(before, after));
    }

    /// Follows a change of open ports, which holds only once it is kept.
    pub fn count_ports(&mut self, owner: UserId, before: usize, after: usize) {
        if before != after {
            self.projection.count_ports(owner, before, after);
            self.changes.push(Change::Ports(owner, before, after));
        }
    }

    /// Follows a change of a reserved claim, which holds only once it is kept.
    pub fn reserve(&mut self, before: Option<MoveRow>, after: Option<MoveRow>) {
        self.projection.reserve(before.as_ref(), after.as_ref());
        self.changes.push(Change::Reserved(before, after));
    }

    /// Follows the drain of a node, which holds only once it is kept.
    pub fn drain(&mut self, node: NodeId, before: bool, drained: bool) {
        self.projection.drain(&node, drained);
        self.changes.push(Change::Drained(node, before));
    }

    /// The batch is committed.
    pub fn keep(&mut self) {
        self.changes.clear();
    }

    /// The batch is not committed: takes its changes back, the last one first.
    pub fn undo(&mut self) {
        while let Some(change) = self.changes.pop() {
            match change {
                Change::Claim(before, after) => {
                    self.projection.change(after.as_ref(), before.as_ref());
                }
                Change::Ports(owner, before, after) => {
                    self.projection.count_ports(owner, after, before);
                }
                Change::Reserved(before, after) => {
                    self.projection.reserve(after.as_ref(), before.as_ref());
                }
                Change::Drained(node, before) => self.projection.drain(&node, before),
            }
        }
    }
}

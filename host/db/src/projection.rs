//! State in memory that is derived from the claims and the open ports.

use super::draft::Followed;
use super::tree::ReadRows;
use wharf_domain::error::Error;
use wharf_domain::ids::UserId;

/// Follows the open ports of VMs, and the tables that are declared as followed, such as the claims. Use
/// cases read free resources and ports from it. It is ahead of the commits by the batch under way, and
/// only the writer changes it.
pub trait Projection: Send {
    /// Derives the state from the committed rows.
    fn load(&mut self, rows: &ReadRows) -> Result<(), Error>;
    /// Follows a change of a row. [`Table::change`](crate::Table::change) shows it as one of a table.
    fn follow(&mut self, change: &Followed);
    /// Follows a change of the number of open ports of an owner's VM.
    fn count_ports(&mut self, owner: UserId, before: usize, after: usize);
}

enum ProjectedChange {
    Row(Followed),
    Ports(UserId, usize, usize),
}

/// A projection with the changes of the batch under way.
pub(super) struct Projected {
    projection: Box<dyn Projection>,
    changes: Vec<ProjectedChange>,
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
    pub fn follow(&mut self, change: Followed) {
        self.projection.follow(&change);
        self.changes.push(ProjectedChange::Row(change));
    }

    /// Follows a change of open ports, which holds only once it is kept.
    pub fn count_ports(&mut self, owner: UserId, before: usize, after: usize) {
        if before != after {
            self.projection.count_ports(owner, before, after);
            self.changes
                .push(ProjectedChange::Ports(owner, before, after));
        }
    }

    /// The batch is committed.
    pub fn keep(&mut self) {
        self.changes.clear();
    }

    /// The batch is not committed: takes its changes back, the last one first.
    pub fn undo(&mut self) {
        while let Some(change) = self.changes.pop() {
            match change {
                ProjectedChange::Row(change) => self.projection.follow(&change.reversed()),
                ProjectedChange::Ports(owner, before, after) => {
                    self.projection.count_ports(owner, after, before);
                }
            }
        }
    }
}

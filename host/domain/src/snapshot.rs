//! The snapshot: a copy of an instance's disk on its node.

use super::event::EventKind;
use super::ids::{InstanceId, SnapshotId};
use super::kept::{Kept, KeptEvent, KeptFailure, KeptKind, KeptStatus};
use super::quota::QuotaUsage;
use super::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The most snapshots of one instance.
pub const MAX_SNAPSHOTS: usize = 32;

const GIB: u64 = 1 << 30;

/// A snapshot. It claims the size of the instance's disk until the node tells the size of the copy. One that could
/// not be taken claims nothing once the node was seen without it.
pub type Snapshot = Kept<OfSnapshot>;

/// The part of a row that only snapshots have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfSnapshot {
    /// The instance that it is a copy of.
    pub instance: InstanceId,
    /// Incarnation of the instance at that time.
    pub incarnation: u64,
    /// Flavor of the instance.
    pub flavor: String,
    /// Size of the instance's disk at that time.
    pub disk_size_gib: u32,
    /// Most bytes that the copy takes, once the node has it.
    pub bytes: Option<u64>,
    /// Whether an instance can be made from it.
    pub clonable: bool,
    /// Time of the run of a plan that took it, by Wharf's own clock.
    pub planned: Option<Timestamp>,
    /// Time when the node was seen to have it.
    pub ready_at: Option<Timestamp>,
}

impl KeptKind for OfSnapshot {
    type Id = SnapshotId;
    const WORD: &'static str = "snapshot";
    const BILLED_AT_ONCE: bool = false;

    fn event(&self, status: KeptStatus, what: KeptEvent) -> EventKind {
        EventKind::Snapshot(self.instance, status, what)
    }

    fn usage(size_gib: u32) -> QuotaUsage {
        QuotaUsage {
            n_snapshots: 1,
            snapshot_gib: u64::from(size_gib),
            ..QuotaUsage::default()
        }
    }

    fn flavor(&self) -> Option<&str> {
        Some(&self.flavor)
    }

    fn reason(failure: KeptFailure) -> &'static str {
        match failure {
            KeptFailure::NotMade | KeptFailure::NoContent => {
                "The host could not take the snapshot. Delete it and take another one; if that fails too, ask \
                 the operator, whose log has the reason."
            }
            KeptFailure::Missing => {
                "The host has the snapshot no more. Its data is lost unless the operator brings it back."
            }
            KeptFailure::Lost => {
                "The host has failed for good, and the data of the snapshot with it."
            }
        }
    }
}

impl Snapshot {
    /// Notes that the node has the whole copy. The quota has allowed for no more than the disk's size.
    pub fn complete(&mut self, bytes: u64, clonable: bool, at: Timestamp) {
        self.made = true;
        self.size_gib = u32::try_from(bytes.div_ceil(GIB))
            .unwrap_or(u32::MAX)
            .min(self.of.disk_size_gib)
            .max(1);
        self.of.bytes = Some(bytes);
        self.of.clonable = clonable;
        self.of.ready_at = Some(at);
    }
}

/// The times at which Wharf takes snapshots of an instance, and those that it keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanRequest {
    pub every_h: u32,
    /// The most planned snapshots.
    pub keep: u32,
    /// Older planned ones go, but for the newest.
    pub keep_days: Option<u32>,
}

impl AsRef<PlanRequest> for PlanRequest {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl fmt::Display for PlanRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { every_h, keep, .. } = self;
        write!(f, "every {every_h} h, and the newest {keep} are kept")?;
        match self.keep_days {
            Some(days) => write!(f, " for {days} days"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{GIB, OfSnapshot, Snapshot};
    use crate::capacity::CpuTier;
    use crate::ids::{InstanceId, NodeId, SnapshotId, UserId};
    use crate::kept::KeptStatus;
    use crate::money::Rate;
    use crate::name::Name;
    use crate::time::Timestamp;
    use uuid::Uuid;

    fn snapshot(disk_size_gib: u32) -> Snapshot {
        Snapshot {
            id: SnapshotId(Uuid::nil()),
            seq: 1,
            owner: UserId(1),
            name: Name::generate(1),
            size_gib: disk_size_gib,
            cpu_tier: CpuTier::GeneralPurpose,
            created_at: Timestamp(1),
            rate: Rate(1),
            node: NodeId("n1".to_owned()),
            deleted: false,
            made: false,
            failure: None,
            events: 0,
            ledger_entries: 0,
            last_event_at: Timestamp(1),
            billed: false,
            of: OfSnapshot {
                instance: InstanceId(Uuid::nil()),
                incarnation: 1,
                flavor: "base".to_owned(),
                disk_size_gib,
                bytes: None,
                clonable: false,
                planned: None,
                ready_at: None,
            },
        }
    }

    #[test]
    fn a_copy_claims_no_more_than_the_disk() {
        for (bytes, size_gib) in [
            (0, 1),
            (3 * GIB + 1, 4),
            (10 * GIB, 10),
            (10 * GIB + 1, 10),
            (u64::MAX, 10),
        ] {
            let mut row = snapshot(10);
            row.complete(bytes, true, Timestamp(2));
            assert_eq!((row.size_gib, row.of.bytes), (size_gib, Some(bytes)));
            assert_eq!(row.status(), KeptStatus::Ready);
        }
    }
}

//! Data on a node that has a row of its own: a volume or a snapshot. The row is its claim too.

use super::backup::BackupEvent;
use super::capacity::{CpuTier, Size};
use super::event::EventKind;
use super::ids::{InstanceId, NodeId, UserId};
use super::money::{Rate, Rates};
use super::name::Name;
use super::quota::QuotaUsage;
use super::state::InstanceState;
use super::time::Timestamp;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::fmt::{Debug, Display};

/// A kind of kept data, which is the part of the row that other kinds have not.
pub trait KeptKind:
    Debug + Clone + PartialEq + Eq + Serialize + DeserializeOwned + Send + Sync + 'static
{
    type Id: Debug
        + Display
        + Copy
        + Ord
        + Into<InstanceId>
        + From<InstanceId>
        + Serialize
        + DeserializeOwned
        + Send
        + Sync
        + 'static;
    /// The kind in audit records and messages.
    const WORD: &'static str;
    /// Whether it is billed before the node has it.
    const BILLED_AT_ONCE: bool;

    /// Wraps an event.
    fn event(&self, status: KeptStatus, what: KeptEvent) -> EventKind;

    /// The quantities of a quota that it holds.
    fn usage(size_gib: u32) -> QuotaUsage;

    /// The flavor of the instance that it is a copy of.
    fn flavor(&self) -> Option<&str>;

    /// The words for the owner.
    fn reason(failure: KeptFailure) -> &'static str;

    /// Why it is of no use if the node cannot make it.
    fn not_made(&self) -> KeptFailure {
        KeptFailure::NotMade
    }
}

/// The database row. It stays until the node was seen without the data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound = "K: KeptKind")]
pub struct Kept<K: KeptKind> {
    pub id: K::Id,
    /// Place in the order of creation of all rows of its kind.
    pub seq: u64,
    pub owner: UserId,
    /// Name, unique among the owner's volumes or the instance's snapshots.
    pub name: Name,
    /// Size that it claims, and that is billed.
    pub size_gib: u32,
    /// Class of CPU that has the rate.
    pub cpu_tier: CpuTier,
    pub created_at: Timestamp,
    /// Rate of a GiB at the time of creation; it never changes.
    pub rate: Rate,
    /// Node that has it. A volume that is lost with it gets another one if it is made again.
    pub node: NodeId,
    /// The user deleted it.
    pub deleted: bool,
    /// The node was seen to have it.
    pub made: bool,
    /// It is of no use any more, for this reason.
    pub failure: Option<KeptFailure>,
    /// Number of events so far, which is the index of the next event.
    pub events: u32,
    /// Number of ledger entries so far, which is the index of the next entry.
    pub ledger_entries: u32,
    /// Time of the last event by Wharf's own clock.
    pub last_event_at: Timestamp,
    /// Whether the last ledger entry bills it.
    pub billed: bool,
    /// The part of this kind.
    pub of: K,
}

/// Why kept data is of no use any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeptFailure {
    /// The node could not make it.
    NotMade,
    /// The node had it, and has it no more.
    Missing,
    /// The node has failed for good.
    Lost,
    /// The content of its backup did not come to the node.
    NoContent,
}

/// The state as the user sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum KeptStatus {
    Creating,
    Ready,
    Error,
    /// The user deleted it.
    Deleting,
}

/// The kind of an event of a volume or a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeptEvent {
    /// The user requested it.
    Created,
    /// The node has it.
    Ready,
    /// It is of no use any more, with the reason for the operator.
    Failed(KeptFailure, String),
    /// The user renamed the volume.
    Renamed,
    /// The user shared the volume with the user of this address.
    Shared(String),
    /// The user ended the share with the user of this address.
    Unshared(String),
    /// The user of this address, a reader, ended the share.
    Left(String),
    /// The user deleted it.
    Deleted,
    /// The operator corrected the bill by this amount in nano-USD.
    BillCorrected { nano_usd: i128, reason: String },
    /// A plan requested the snapshot.
    Planned,
    /// A plan deleted the snapshot.
    Retired,
    /// An event about a backup of the volume.
    Backup(BackupEvent),
    /// The volume, which was lost, is made again from its backup of this time.
    RecreatedFrom(Timestamp),
}

impl KeptStatus {
    /// Returns the spelling of the REST interface.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Creating => "creating",
            Self::Ready => "ready",
            Self::Error => "error",
            Self::Deleting => "deleting",
        }
    }
}

impl<K: KeptKind> Kept<K> {
    /// Derives the state from the intent and the observations.
    pub fn status(&self) -> KeptStatus {
        match (self.deleted, self.failure, self.made) {
            (true, ..) => KeptStatus::Deleting,
            (_, Some(_), _) => KeptStatus::Error,
            (_, None, true) => KeptStatus::Ready,
            (_, None, false) => KeptStatus::Creating,
        }
    }

    /// Whether it is billed in its present state.
    pub fn is_billed(&self) -> bool {
        match self.status() {
            KeptStatus::Creating => K::BILLED_AT_ONCE,
            KeptStatus::Ready => true,
            KeptStatus::Error | KeptStatus::Deleting => false,
        }
    }

    /// The state of an instance that is billed alike: for its disk alone, or not at all. Events and ledgers
    /// have the form of those of instances.
    pub fn billed_as(&self) -> InstanceState {
        match self.status() {
            KeptStatus::Deleting => InstanceState::Deleted,
            _ if self.is_billed() => InstanceState::Exited,
            _ => InstanceState::Error,
        }
    }

    /// Whether the node has not been seen to follow the row.
    pub fn is_pending(&self) -> bool {
        self.deleted || self.status() == KeptStatus::Creating
    }

    /// Whether it was lost with its node. It claims nothing then.
    pub fn is_lost(&self) -> bool {
        self.failure == Some(KeptFailure::Lost)
    }

    /// The size as an instance with this disk alone would have it.
    pub fn size(&self) -> Size {
        disk(self.size_gib)
    }

    /// The rates in the form of the ledger.
    pub fn rates(&self) -> Rates {
        Rates {
            disk: self.rate,
            ..Rates::default()
        }
    }

    /// The words for its owner on why it is of no use any more.
    pub fn reason(&self) -> Option<&'static str> {
        self.failure.map(K::reason)
    }
}

/// A size with a disk alone. No instance has it, so that it tells kept data from instances.
pub fn disk(size_gib: u32) -> Size {
    Size {
        disk_size_gib: size_gib,
        ..Size::default()
    }
}

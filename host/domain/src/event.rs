//! The event log of an instance, in the order of the writes. The ledger is derived from it.

use super::audit::Actor;
use super::backup::BackupEvent;
use super::capacity::Size;
use super::ids::{InstanceId, VolumeId};
use super::kept::{KeptEvent, KeptFailure, KeptStatus};
use super::placement::Allocation;
use super::shortage::Shortage;
use super::snapshot::PlanRequest;
use super::state::InstanceState;
use super::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::Ipv4Addr;

/// One entry of the event log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceEvent {
    /// Time of the event by the system's clock, which may be set back. Numbers have the order.
    pub at: Timestamp,
    pub instance: InstanceId,
    pub what: EventKind,
    /// State after the event.
    pub state: InstanceState,
    /// Size after the event.
    pub size: Size,
}

/// The initiator of an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Initiator {
    /// A user or the operator.
    Actor(Actor),
    /// Wharf itself, such as at the end of a deadline.
    System,
    /// The node, as Wharf observed it.
    Node,
}

impl Initiator {
    /// The kind of the initiator, and its id if it has one.
    pub fn parts(&self) -> (String, Option<String>) {
        let text = self.to_string();
        match text.split_once(':') {
            Some((kind, id)) => (kind.to_owned(), Some(id.to_owned())),
            None => (text, None),
        }
    }
}

impl fmt::Display for Initiator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // The database of an earlier version does not name the key.
            Self::Actor(Actor::Key(id)) if id.is_empty() => f.write_str("key"),
            Self::Actor(actor) => actor.fmt(f),
            Self::System => f.write_str("system"),
            Self::Node => f.write_str("node"),
        }
    }
}

/// The kind of an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum EventKind {
    /// The user requested the instance.
    Created,
    /// The instance became reachable.
    Ready,
    /// Provisioning failed, with the reason for the operator.
    Failed(String),
    /// The user stopped the instance.
    Stopped,
    /// The node was observed to have stopped the instance, and its compute claim was released.
    Released,
    /// The instance ended by itself, with the engine's reason.
    Died(String),
    /// The user restarted the instance.
    Restarted,
    /// A restart failed, with the reason for the operator.
    RestartFailed(String),
    /// The user resized the instance.
    Resized,
    /// The node refused a new size; the old size stays.
    ResizeRefused {
        /// Field that the node refused; `None` if it did not respond.
        field: Option<String>,
        message: String,
    },
    /// The user renamed the instance.
    Renamed,
    /// The user opened or closed a port.
    PortsChanged,
    /// The user deleted the instance.
    Deleted,
    /// The node no longer has the instance, and its claim was released.
    Purged,
    /// The node lacks resources for a restart; the instance stays stopped.
    RestartShort(Vec<Shortage>),
    /// The node lacks resources for a new size; the old size stays.
    ResizeShort(Vec<Shortage>),
    /// The operator removed the instance from the books; its node was not asked.
    Forgotten,
    /// The operator corrected the bill by this amount in nano-USD.
    BillCorrected { nano_usd: i128, reason: String },
    /// The operator suspended the instance, with the reason for its user.
    Suspended(String),
    /// The operator ended the suspension.
    Resumed,
    /// The instance shows another SSH host key than before, with the fingerprints of the new ones.
    HostKeyChanged(String),
    /// The operator drains the node of the running instance, which stays there.
    NodeDrained,
    /// The instance is to move to another node.
    Moving,
    /// The instance is on another node, where it has these addresses.
    Moved(InstanceAddresses),
    /// The instance could not move and stays on its node, with the reason for the operator.
    MoveFailed(String),
    /// The node of the instance has failed for good, and its disk with it.
    Lost,
    /// The user created a lost instance again, with a new disk.
    Recreated,
    /// Something outside Wharf holds these on the node of a new instance. The instance has these addresses
    /// instead, or fails if none are left.
    AllocationLost(Vec<Allocation>, Option<InstanceAddresses>),
    /// The content of the started instance moves to a larger disk, with the progress.
    DiskGrowing(String),
    /// The user shared the page or a port, in these words.
    ShareCreated(String),
    /// The user changed a share, which is now in these words.
    ShareChanged(String),
    /// The user withdrew the share of this page.
    ShareRemoved(String),
    /// A visitor other than the owner opened a page.
    PageVisited {
        page: String,
        /// The e-mail address of the visitor.
        visitor: String,
    },
    /// An event of a volume, with its state afterwards. The id of the event is that of the volume.
    Volume(KeptStatus, KeptEvent),
    /// The instance has this volume.
    VolumeAttached {
        volume: VolumeId,
        /// Name of the volume.
        name: String,
        path: String,
        read_only: bool,
    },
    /// The instance has this volume no more.
    VolumeDetached {
        volume: VolumeId,
        /// Name of the volume.
        name: String,
    },
    /// An event of a snapshot of an instance, with its state afterwards. The id of the event is that of the
    /// snapshot.
    Snapshot(InstanceId, KeptStatus, KeptEvent),
    /// The disk of the stopped instance becomes that of a snapshot, with the progress.
    Restoring(String),
    /// The disk is that of the snapshot of this name.
    Restored(String),
    /// A restore failed, with the reason for the operator. The engine may have changed the disk.
    RestoreFailed(String),
    /// The user set a plan for snapshots.
    PlanSet(PlanRequest),
    /// The user removed the plan for snapshots.
    PlanRemoved,
    /// The plan was due and took no snapshot, for this reason.
    PlanFailed(String),
    /// An event of the backups of the instance.
    Backup(BackupEvent),
    /// A lost instance is created again, with the disk of its backup of this time.
    RecreatedFrom(Timestamp),
}

/// The addresses of an instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceAddresses {
    pub ssh_host: String,
    pub ssh_port: u16,
    pub lan_ipv4: Ipv4Addr,
    pub public_ipv4: Option<Ipv4Addr>,
}

impl EventKind {
    /// The initiator of such an event if no actor is known.
    pub fn usual_initiator(&self) -> Initiator {
        match self {
            Self::Created
            | Self::Stopped
            | Self::Restarted
            | Self::Renamed
            | Self::Recreated
            | Self::RecreatedFrom(_)
            | Self::PortsChanged
            | Self::ShareCreated(_)
            | Self::ShareChanged(_)
            | Self::ShareRemoved(_)
            | Self::PlanSet(_)
            | Self::PlanRemoved
            | Self::Backup(
                BackupEvent::Created | BackupEvent::PlanSet(_) | BackupEvent::PlanRemoved,
            )
            | Self::Volume(
                _,
                KeptEvent::Created
                | KeptEvent::Renamed
                | KeptEvent::Shared(_)
                | KeptEvent::Unshared(_)
                | KeptEvent::Deleted,
            )
            | Self::Snapshot(_, _, KeptEvent::Created | KeptEvent::Deleted)
            | Self::Deleted => Initiator::Actor(Actor::Key(String::new())),
            Self::Forgotten
            | Self::BillCorrected { .. }
            | Self::NodeDrained
            | Self::Moving
            | Self::Volume(
                _,
                KeptEvent::Failed(KeptFailure::Lost, _) | KeptEvent::BillCorrected { .. },
            )
            | Self::Snapshot(
                _,
                _,
                KeptEvent::Failed(KeptFailure::Lost, _) | KeptEvent::BillCorrected { .. },
            )
            | Self::Lost => Initiator::Actor(Actor::Operator),
            Self::Ready
            | Self::Released
            | Self::Died(_)
            | Self::Resized
            | Self::ResizeRefused { field: Some(_), .. }
            | Self::RestartShort(_)
            | Self::ResizeShort(_)
            | Self::Purged
            | Self::AllocationLost(..)
            | Self::DiskGrowing(_)
            | Self::Volume(_, KeptEvent::Ready | KeptEvent::Failed(..))
            | Self::Snapshot(_, _, KeptEvent::Ready | KeptEvent::Failed(..))
            | Self::Restoring(_)
            | Self::Restored(_)
            | Self::RestoreFailed(_)
            | Self::VolumeAttached { .. }
            | Self::VolumeDetached { .. }
            | Self::Moved(_) => Initiator::Node,
            _ => Initiator::System,
        }
    }
}

impl fmt::Display for InstanceAddresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            ssh_host,
            ssh_port,
            lan_ipv4,
            ..
        } = self;
        write!(
            f,
            "SSH port {ssh_port} of {ssh_host}, private address {lan_ipv4}"
        )?;
        match self.public_ipv4 {
            Some(address) => write!(f, ", public address {address}"),
            None => Ok(()),
        }
    }
}

//! Row types that exist only in the database.

use super::codec::decode;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use wharf_domain::audit::AuditRecord;
use wharf_domain::blueprint::Blueprint;
use wharf_domain::capacity::{Claim, Size};
use wharf_domain::error::Error;
use wharf_domain::event::{Initiator, InstanceEvent};
use wharf_domain::ids::{InstanceId, NodeId, UserId};
use wharf_domain::instance::Instance;
use wharf_domain::kept::{Kept, KeptKind};
use wharf_domain::name::Name;
use wharf_domain::secret::Encrypted;

/// The part of an instance that only its creation needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProvisioningSpec {
    /// Host name inside; a later rename does not change it.
    pub hostname: String,
    /// Composition of the instance.
    pub blueprint: Arc<Blueprint>,
    /// The user's secrets, encrypted.
    pub secrets: Encrypted,
}

/// The move of an instance to another node of its cluster. Until it has ended, the instance has its claim
/// on the old node, and this one is reserved beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveRow {
    /// The claim on the new node. Ports that the instance keeps count in its present claim alone.
    pub claim: Claim,
    /// Login host of the new node.
    pub ssh_host: String,
    /// The SSH port stays, since both nodes have one login host.
    pub keeps_ssh_port: bool,
    /// The old node was seen to have stopped the instance.
    pub stopped: bool,
    /// The instance ran, and starts again after the move.
    pub run: bool,
}

/// An event with its place among the events of its owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventRow {
    /// First, so that earlier versions' rows are a prefix.
    pub event: InstanceEvent,
    /// Owner of the instance.
    pub owner: UserId,
    /// Number among the owner's events, from 1 on. The write that appends the event sets it.
    pub seq: u64,
    /// Name of the instance after the event; `None` if an earlier version purged the instance.
    pub name: Option<String>,
    /// The initiator.
    pub initiator: Initiator,
}

/// An instance, a volume or a snapshot as its owner knew it, on the bill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BilledAs {
    /// Its last name; `None` if an earlier version purged the instance.
    pub name: Option<String>,
    /// Its flavor, or that of the instance that a snapshot is a copy of; `None` for a volume, or if an
    /// earlier version purged the instance.
    pub flavor: Option<String>,
    /// Its last size.
    pub size: Size,
}

/// The kinds of things on a bill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BilledKind {
    Instance,
    Volume,
    Snapshot,
}

/// The claim of a volume or a snapshot that is not lost.
#[derive(Debug, Clone)]
pub struct KeptClaim {
    /// In the form of the ledger.
    pub id: InstanceId,
    /// The kind in words.
    pub word: &'static str,
    pub name: Name,
    pub node: NodeId,
    pub size_gib: u32,
}

impl BilledAs {
    /// Its kind: an instance has vCPUs, and a volume no flavor.
    pub fn kind(&self) -> BilledKind {
        match (self.size.n_vcpus, &self.flavor) {
            (0, None) => BilledKind::Volume,
            (0, Some(_)) => BilledKind::Snapshot,
            _ => BilledKind::Instance,
        }
    }
}

impl<K: KeptKind> From<&Kept<K>> for BilledAs {
    fn from(kept: &Kept<K>) -> Self {
        Self {
            name: Some(kept.name.as_str().to_owned()),
            flavor: kept.of.flavor().map(str::to_owned),
            size: kept.size(),
        }
    }
}

impl From<&Instance> for BilledAs {
    fn from(instance: &Instance) -> Self {
        Self {
            name: Some(instance.name.as_str().to_owned()),
            flavor: Some(instance.flavor.clone()),
            size: instance.size,
        }
    }
}

/// A record of the audit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRow {
    /// The encoded record. The hash is over these bytes, whichever version wrote them.
    pub record: Vec<u8>,
    /// Hash of the hash of the record before, the number and the record.
    pub hash: [u8; 32],
}

impl AuditRow {
    /// Decodes the record.
    pub fn read(&self) -> Result<AuditRecord, Error> {
        decode(&self.record)
    }
}

/// Counters of an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OwnerRow {
    /// Number of changes of what the owner's list shows.
    pub version: u64,
    /// Place of the latest instance in the order of creation.
    pub last_seq: u64,
}

/// The end of the audit log. An operator who keeps it elsewhere can tell that nothing before it has
/// changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AuditHead {
    /// Number of the last record; 0 if there is none.
    pub number: u64,
    /// Hash of the last record.
    pub hash: [u8; 32],
}

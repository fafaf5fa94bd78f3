//! Row types that exist only in the database.

use super::codec::decode;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use wharf_domain::audit::{AuditRecord, Origin};
use wharf_domain::blueprint::Blueprint;
use wharf_domain::capacity::{Claim, Size};
use wharf_domain::error::Error;
use wharf_domain::event::{Event, Party};
use wharf_domain::ids::UserId;
use wharf_domain::instance::Instance;
use wharf_domain::scope::Scopes;
use wharf_domain::secret::Encrypted;
use wharf_domain::time::Timestamp;

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

/// A start that the node has not taken yet, or has not been seen without after it was withdrawn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartRow {
    /// The request.
    pub origin: Origin,
    /// The start claimed the compute, which was free before.
    pub claimed: bool,
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

/// An API key. The secret itself is not stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRow {
    /// Public part of the key.
    pub id: String,
    /// Its user.
    pub user: UserId,
    /// The name that its owner gave it.
    pub name: String,
    /// SHA-256 of the whole key.
    pub sha256: [u8; 32],
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of revocation.
    pub revoked_at: Option<Timestamp>,
}

/// An event with its place among the events of its owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventRow {
    /// First, so that earlier versions' rows are a prefix.
    pub event: Event,
    /// Owner of the instance.
    pub owner: UserId,
    /// Number among the owner's events, from 1 on. The write that appends the event sets it.
    pub seq: u64,
    /// Name of the instance after the event; `None` if an earlier version purged the instance.
    pub name: Option<String>,
    /// The party that caused it.
    pub party: Party,
}

/// An instance as its owner knew it, on the bill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BilledAs {
    /// Its last name; `None` if an earlier version purged the instance.
    pub name: Option<String>,
    /// Its flavor; `None` if an earlier version purged the instance.
    pub flavor: Option<String>,
    /// Its last size.
    pub size: Size,
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

/// The digest of an idempotency key.
pub type IdempotencyDigest = [u8; 32];

/// A create request with an idempotency key, for replays of its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdempotentCreate {
    /// Digest of the request's body.
    pub body: [u8; 32],
    /// Time of the request.
    pub at: Timestamp,
    /// The instance as it was created.
    pub instance: Instance,
}

/// The facts about a node that outlive the process.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NodeRow {
    /// The mark of the engine's store; `None` before the first contact, or if the engine keeps none.
    pub mark: Option<String>,
    /// The operator has accepted the engine as it is now, and the observer has not yet acted on it.
    pub accepted: bool,
}

/// The terms of an API key. A key without this row has all scopes and does not expire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyTerms {
    /// Its permissions.
    pub scopes: Scopes,
    /// The time from which on it is not valid.
    pub expires_at: Option<Timestamp>,
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
    pub(super) fn read(&self) -> Result<AuditRecord, Error> {
        decode(&self.record)
    }
}

/// The time at which the database was last in use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockRow {
    pub at: Timestamp,
    /// Milliseconds since the boot of the machine.
    pub boot_ms: i64,
    /// The kernel's id of that boot.
    pub boot_id: String,
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

/// The public id of a session.
pub type SessionId = [u8; 8];

/// A session. Its token is not stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRow {
    /// SHA-256 of the whole token.
    pub sha256: [u8; 32],
    /// Time of the sign-in.
    pub created_at: Timestamp,
}

/// An invitation. Its token is not stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InviteRow {
    /// SHA-256 of the whole token.
    pub sha256: [u8; 32],
    /// The time from which on it is not valid.
    pub expires_at: Timestamp,
}

/// An Argon2id hash of a password, with its parameters.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PasswordRow {
    /// Memory in KiB.
    pub memory_kib: u32,
    /// Passes over the memory.
    pub passes: u32,
    /// Degree of parallelism.
    pub lanes: u32,
    pub salt: [u8; 16],
    pub hash: [u8; 32],
}

impl fmt::Debug for PasswordRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(password hash)")
    }
}

/// SHA-256 of a credential id.
pub type PasskeyDigest = [u8; 32];

/// SHA-256 of an issuer and a subject.
pub type IdentityDigest = [u8; 32];

/// A passkey.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PasskeyRow {
    /// The name that its owner gave it.
    pub name: String,
    /// The id that its authenticator chose.
    pub credential: Vec<u8>,
    /// The host of the console for which it was made. Browsers offer it there only.
    pub host: String,
    /// The ways in which browsers reach the authenticator, as bits.
    pub transports: u8,
    /// The public key and the settings that never change.
    pub fixed: Vec<u8>,
    /// The counter of signatures and the other state that a sign-in changes.
    pub state: [u8; 7],
    pub created_at: Timestamp,
    pub last_used_at: Option<Timestamp>,
}

/// An identity at a provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdentityRow {
    pub issuer: String,
    /// The provider's id of the user.
    pub subject: String,
    /// The verified address at the time of the link.
    pub email: String,
    pub linked_at: Timestamp,
}

/// The public id of a saved SSH key.
pub type SshKeyId = [u8; 8];

/// A saved SSH public key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SshKeyRow {
    /// The name that its owner gave it, unique for the owner.
    pub name: String,
    /// One OpenSSH public key line.
    pub public_key: String,
    pub created_at: Timestamp,
}

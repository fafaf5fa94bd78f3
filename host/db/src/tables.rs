//! The tables: group and kind, the two parts of the key, the value.
//!
//! Claims are in a group of their own, because a start reads all of them.

use super::rows::{
    AuditRow, ClockRow, IdempotencyDigest, IdempotentCreate, KeyRow, KeyTerms, NodeRow, OwnerRow,
    ProvisioningSpec,
};
use super::table::Table;
use uuid::Uuid;
use wharf_domain::capacity::Claim;
use wharf_domain::event::Event;
use wharf_domain::ids::{InstanceId, UserId};
use wharf_domain::instance::Instance;
use wharf_domain::ledger::{Correction, Cost, Entry};
use wharf_domain::quota::{Amounts, UserLimit};
use wharf_domain::secret::Fingerprint;
use wharf_domain::time::Timestamp;

/// The name of this installation towards engines.
pub const INSTALLATION: Table<(), (), Uuid> = Table::new(b'#', 0);
/// The fingerprint of the key that encrypts secrets.
pub const KEY_FINGERPRINT: Table<(), (), Fingerprint> = Table::new(b'#', 1);

/// The time at which the database was last in use.
pub const CLOCK: Table<(), (), ClockRow> = Table::new(b't', 0);

/// E-mail address of each user.
pub const USERS: Table<UserId, (), String> = Table::new(b'u', 0);
/// E-mail address → user.
pub const EMAILS: Table<str, (), UserId> = Table::new(b'e', 0);
/// Limits of a user that differ from the configuration.
pub const USER_LIMITS: Table<UserId, (), Amounts<UserLimit>> = Table::new(b'q', 0);
/// Public key id → key.
pub const KEYS: Table<str, (), KeyRow> = Table::new(b'k', 0);
/// Scopes and expiry of a key.
pub const KEY_TERMS: Table<str, (), KeyTerms> = Table::new(b'k', 1);
/// The last use of a key, to the minute.
pub const KEY_USES: Table<str, (), Timestamp> = Table::new(b'k', 2);

/// The audit log by number.
pub const AUDIT: Table<(), u64, AuditRow> = Table::new(b'a', 0);
/// The numbers of the records about an owner.
pub const AUDIT_BY_OWNER: Table<(), (UserId, u64), ()> = Table::new(b'a', 1);

/// Instances.
pub const INSTANCES: Table<InstanceId, (), Instance> = Table::new(b'i', 0);
/// Data that only the creation of an instance needs.
pub const PROVISIONING_SPECS: Table<InstanceId, (), ProvisioningSpec> = Table::new(b'i', 1);
/// Events of an instance by number. They outlive it.
pub const EVENTS: Table<InstanceId, u32, Event> = Table::new(b'i', 2);
/// Ledger entries of an instance by number. They outlive it.
pub const LEDGER: Table<InstanceId, u32, Entry> = Table::new(b'i', 3);

/// Corrections of an instance's bill by number. They outlive it.
pub const CORRECTIONS: Table<InstanceId, u32, Correction> = Table::new(b'i', 4);

/// Instances of an owner with a ledger or events, purged ones included.
pub const RECORDED: Table<UserId, InstanceId, ()> = Table::new(b'r', 0);
/// Costs of an owner's instances whose ledger was closed, by [`Month`](wharf_domain::month::Month).
pub const CLOSED: Table<UserId, (u32, InstanceId), Cost> = Table::new(b'b', 0);
/// Whether [`RECORDED`] has the instances of earlier versions.
pub const RECORDED_ALL: Table<(), (), ()> = Table::new(b't', 1);

/// Claims by node.
pub const CLAIMS: Table<str, InstanceId, Claim> = Table::new(b'c', 0);
/// Instances whose node has not been seen to follow the intent.
pub const PENDING: Table<InstanceId, (), ()> = Table::new(b'p', 0);

/// Nodes by name.
pub const NODES: Table<str, (), NodeRow> = Table::new(b'N', 0);

/// Name → instance, of instances that are not deleted.
pub const NAMES: Table<str, (), InstanceId> = Table::new(b'n', 0);
/// Counters of an owner.
pub const OWNERS: Table<UserId, (), OwnerRow> = Table::new(b'o', 0);
/// Instances of an owner in order of creation, without deleted ones.
pub const OWNED: Table<UserId, u64, InstanceId> = Table::new(b'o', 1);

/// Create requests by their owner and idempotency key.
pub const IDEMPOTENT: Table<(), (UserId, IdempotencyDigest), IdempotentCreate> =
    Table::new(b'y', 0);
/// The keys of [`IDEMPOTENT`] in order of time, in milliseconds.
pub const IDEMPOTENT_BY_TIME: Table<(), (u64, (UserId, IdempotencyDigest)), ()> =
    Table::new(b'y', 1);

//! The tables: group and kind, the two parts of the key, the value.
//!
//! Claims are in a group of their own, because a start reads all of them.

use super::rows::{
    AuditHead, AuditRow, BilledAs, ClockRow, EventRow, IdempotencyDigest, IdempotentCreate,
    IdentityDigest, IdentityRow, InviteRow, KeyRow, KeyTerms, MoveRow, NodeRow, OwnerRow,
    PasskeyDigest, PasskeyRow, PasswordRow, ProvisioningSpec, SessionId, SessionRow, SshKeyId,
    SshKeyRow, StartRow,
};
use super::table::Table;
use uuid::Uuid;
use wharf_domain::capacity::Claim;
use wharf_domain::host_key::HostKey;
use wharf_domain::ids::{InstanceId, UserId};
use wharf_domain::instance::Instance;
use wharf_domain::ledger::{Correction, Cost, Entry};
use wharf_domain::quota::{Amounts, UserLimit};
use wharf_domain::secret::Fingerprint;
use wharf_domain::suspension::Suspension;
use wharf_domain::time::Timestamp;
use wharf_domain::webhook::{Delivery, Webhook, WebhookId};

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
/// Keys of a user that are not revoked.
pub const USER_KEYS: Table<UserId, String, ()> = Table::new(b'K', 0);

/// Sessions of a user by id.
pub const SESSIONS: Table<UserId, SessionId, SessionRow> = Table::new(b's', 0);
/// The last use of a session, to the minute.
pub const SESSION_USES: Table<UserId, SessionId, Timestamp> = Table::new(b's', 1);
/// The invitation of a user that is not accepted yet.
pub const INVITES: Table<UserId, (), InviteRow> = Table::new(b'U', 0);
/// The password of a user.
pub const PASSWORDS: Table<UserId, (), PasswordRow> = Table::new(b'U', 1);
/// Users that are disabled, with the time of it.
pub const DISABLED: Table<UserId, (), Timestamp> = Table::new(b'U', 2);

/// Passkeys of a user by the digest of their credential id.
pub const PASSKEYS: Table<UserId, PasskeyDigest, PasskeyRow> = Table::new(b'P', 0);
/// Digest of a credential id → user.
pub const PASSKEY_USERS: Table<(), PasskeyDigest, UserId> = Table::new(b'P', 1);
/// Identities of a user at providers of OpenID Connect, by digest.
pub const IDENTITIES: Table<UserId, IdentityDigest, IdentityRow> = Table::new(b'I', 0);
/// Digest of an identity → user.
pub const IDENTITY_USERS: Table<(), IdentityDigest, UserId> = Table::new(b'I', 1);

/// Saved SSH public keys of a user by id.
pub const SSH_KEYS: Table<UserId, SshKeyId, SshKeyRow> = Table::new(b'S', 0);

/// The audit log by number.
pub const AUDIT: Table<(), u64, AuditRow> = Table::new(b'a', 0);
/// The numbers of the records about an owner.
pub const AUDIT_BY_OWNER: Table<(), (UserId, u64), ()> = Table::new(b'a', 1);
/// The last record that retention removed. The chain goes on from it.
pub const AUDIT_ANCHOR: Table<(), (), AuditHead> = Table::new(b'a', 2);

/// Instances.
pub const INSTANCES: Table<InstanceId, (), Instance> = Table::new(b'i', 0);
/// Data that only the creation of an instance needs.
pub const PROVISIONING_SPECS: Table<InstanceId, (), ProvisioningSpec> = Table::new(b'i', 1);
/// Events of an instance by number. They outlive it.
pub const EVENTS: Table<InstanceId, u32, EventRow> = Table::new(b'i', 2);
/// Ledger entries of an instance by number. They outlive it.
pub const LEDGER: Table<InstanceId, u32, Entry> = Table::new(b'i', 3);

/// Corrections of an instance's bill by number. They outlive it.
pub const CORRECTIONS: Table<InstanceId, u32, Correction> = Table::new(b'i', 4);

/// Purged instances as their owners knew them, for as long as their costs are kept.
pub const BILLED_AS: Table<InstanceId, (), BilledAs> = Table::new(b'i', 5);

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
/// Nodes that the operator drains.
pub const DRAINED: Table<str, (), ()> = Table::new(b'N', 1);

/// Instances that the operator suspended.
pub const SUSPENDED: Table<(), InstanceId, Suspension> = Table::new(b'x', 0);
/// Users whose instances the operator suspended.
pub const SUSPENDED_USERS: Table<(), UserId, Suspension> = Table::new(b'x', 1);
/// SSH host keys of instances, as the host was shown them last.
pub const HOST_KEYS: Table<(), InstanceId, Vec<HostKey>> = Table::new(b'x', 2);
/// Starts that nodes have not taken.
pub const STARTS: Table<(), InstanceId, StartRow> = Table::new(b'x', 3);

/// Moves of instances to other nodes, with the claims that are reserved there.
pub const MOVES: Table<(), InstanceId, MoveRow> = Table::new(b'x', 4);
/// Instances whose node was lost with their disk. They have no claim.
pub const LOST: Table<(), InstanceId, ()> = Table::new(b'x', 5);
/// Users who let the operator stop, move and start their running instances.
pub const MOVABLE: Table<UserId, (), ()> = Table::new(b'q', 1);

/// Name → instance, of instances that are not deleted.
pub const NAMES: Table<str, (), InstanceId> = Table::new(b'n', 0);
/// Counters of an owner.
pub const OWNERS: Table<UserId, (), OwnerRow> = Table::new(b'o', 0);
/// Instances of an owner in order of creation, without deleted ones.
pub const OWNED: Table<UserId, u64, InstanceId> = Table::new(b'o', 1);

/// The events of an owner by number, without a gap: instance, and number within it.
pub const OWNER_EVENTS: Table<UserId, u64, (InstanceId, u32)> = Table::new(b'E', 0);
/// The number of the last event that was removed from [`OWNER_EVENTS`].
pub const TRIMMED_EVENTS: Table<UserId, (), u64> = Table::new(b'E', 1);

/// Webhooks of a user.
pub const WEBHOOKS: Table<UserId, WebhookId, Webhook> = Table::new(b'w', 0);
/// Deliveries of a user's webhooks by number.
pub const DELIVERIES: Table<UserId, (WebhookId, u64), Delivery> = Table::new(b'w', 1);

/// Create requests by their owner and idempotency key.
pub const IDEMPOTENT: Table<(), (UserId, IdempotencyDigest), IdempotentCreate> =
    Table::new(b'y', 0);
/// The keys of [`IDEMPOTENT`] in order of time, in milliseconds.
pub const IDEMPOTENT_BY_TIME: Table<(), (u64, (UserId, IdempotencyDigest)), ()> =
    Table::new(b'y', 1);

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    #[test]
    fn each_table_has_its_bound_and_its_retention_in_the_documentation() {
        let source = include_str!("tables.rs");
        let declared = source.lines().filter_map(|line| {
            let (name, of) = line.strip_prefix("pub const ")?.split_once(':')?;
            of.contains("Table<").then_some(name)
        });
        let declared: BTreeSet<_> = declared.collect();
        let page = include_str!("../../../docs/operating.md");
        let (_, section) = page.split_once("| Tables | Bound | Kept |").unwrap();
        let (table, _) = section.split_once("\n\n").unwrap();
        let mut described = BTreeSet::new();
        for line in table.lines().skip(2) {
            let cells: Vec<_> = line.split('|').map(str::trim).collect();
            assert!(cells[2..4].iter().all(|cell| !cell.is_empty()), "{line}");
            let names = cells[1].split(", ").map(|name| name.trim_matches('`'));
            for name in names {
                assert!(described.insert(name), "{name} is described twice");
            }
        }
        assert_eq!(described, declared);
    }
}

//! The tables. Values are [`super::codec`] rows unless a plain type says all.

use redb::TableDefinition;

type Rows<K> = TableDefinition<'static, K, &'static [u8]>;

/// Counters and the format.
pub const META: TableDefinition<&str, u64> = TableDefinition::new("meta");
/// Names this installation towards engines; written once.
pub const INSTALLATION: TableDefinition<(), u128> = TableDefinition::new("installation");
/// User id → e-mail address.
pub const USERS: TableDefinition<u64, &str> = TableDefinition::new("users");
/// E-mail address → user id.
pub const EMAILS: TableDefinition<&str, u64> = TableDefinition::new("emails");
/// Public key id → key.
pub const KEYS: Rows<&str> = Rows::new("keys");
/// Instance id → instance.
pub const INSTANCES: Rows<u128> = Rows::new("instances");
/// What is rarely needed of an instance.
pub const DETAILS: Rows<u128> = Rows::new("details");
/// Name → instance id, of instances that are not deleted.
pub const NAMES: TableDefinition<&str, u128> = TableDefinition::new("names");
/// (owner, order of creation) → instance id, of instances that are not deleted.
pub const OWNED: TableDefinition<(u64, u64), u128> = TableDefinition::new("owned");
/// Owner → number of changes of what the owner's list shows.
pub const OWNER_VERSIONS: TableDefinition<u64, u64> = TableDefinition::new("owner_versions");
/// Instance id → claim.
pub const CLAIMS: Rows<u128> = Rows::new("claims");
/// (node, instance id) of every claim.
pub const ON_NODE: TableDefinition<(&str, u128), ()> = TableDefinition::new("on_node");
/// Instances whose node has not been seen to follow the intent.
pub const PENDING: TableDefinition<u128, ()> = TableDefinition::new("pending");
/// (instance id, number) → event.
pub const EVENTS: Rows<(u128, u32)> = Rows::new("events");
/// (instance id, number) → ledger entry.
pub const LEDGER: Rows<(u128, u32)> = Rows::new("ledger");

/// Key in [`META`]: format of the rows.
pub const FORMAT: &str = "format";
/// Key in [`META`]: place of the next instance in the order of creation.
pub const NEXT_SEQ: &str = "next_seq";
/// Key in [`META`]: how often the file was brought up to date with what the journal had.
pub const EPOCH: &str = "epoch";
/// Key in [`META`]: a random number of the latest opening.
pub const SESSION: &str = "session";
/// Key in [`META`]: the session at whose end the file had everything that the journal had; none while
/// there is one.
pub const CLOSED: &str = "closed";
/// What no session has for a number.
pub const NO_SESSION: u64 = 0;

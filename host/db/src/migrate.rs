//! Moves a database of an earlier format to the present one. Formats 3 and 4 have the rows of format 5,
//! except for events, which are numbered. The rows of format 2 are moved, which had ten tables in trees
//! of their own and a journal before them. [`STEPS`] lead from format 5 to the present one.

use super::OpenError;
use super::codec::{decode, internal};
use super::rows::OwnerRow;
use super::table::Draft;
use super::tables as t;
use redb::{Key, ReadableTable, Table, TableDefinition, Value, WriteTransaction};
use std::path::Path;
use uuid::Uuid;
use wharf_domain::capacity::Claim;
use wharf_domain::error::Error;
use wharf_domain::ids::{InstanceId, UserId};

/// A change of the rows that leads from one format to the next.
struct Step {
    /// The change, for the log: "gave each user a list of keys".
    done: &'static str,
    run: fn(&mut Draft<'_>) -> Result<(), Error>,
}

/// The steps from format 5 on, in order; each makes the next format. All that a file needs run in one
/// transaction, before anything else reads the rows, and each runs once for a file.
///
/// A new step is added at the end, with its function in the file of its subject:
///
/// ```ignore
/// Step { done: "wrote addresses in one form", run: accounts::write_addresses_in_one_form },
/// ```
///
/// The function reads with the methods of [`Rows`](super::table::Rows) and writes with
/// [`Draft::put`] and [`Draft::remove`]. It collects the rows of a table before it changes that table,
/// succeeds on a database without rows, and keeps no server from its start: a row that it
/// cannot change is left, and named in the log. The types of the rows stay readable for it, so a table
/// whose type changes becomes a new table.
const STEPS: &[Step] = &[
    Step {
        done: "gave each user a list of API keys",
        run: |rows| rows.index_keys(),
    },
    Step {
        done: "took the scope `metrics` from keys that users made",
        run: |rows| rows.take_metrics_from_users(),
    },
    Step {
        done: "wrote the addresses of users in one form",
        run: |rows| rows.write_canonical_addresses(),
    },
];

/// The format before the first of [`STEPS`].
const BEFORE_STEPS: u64 = 5;

/// The format that this version writes. In format 4 ciphertexts name their keys. In format 5 the
/// events of an owner are numbered.
pub(super) const FORMAT: u64 = BEFORE_STEPS + STEPS.len() as u64;

/// The format whose rows are moved.
pub(super) const TREES: u64 = 2;
/// The format whose ciphertexts do not name their keys.
const UNNAMED_KEYS: u64 = 3;
/// The format whose events are not numbered.
const UNNUMBERED_EVENTS: u64 = 4;
/// The file of format 2's journal.
pub(super) const JOURNAL: &str = "wharf.journal";

type Rows<K> = TableDefinition<'static, K, &'static [u8]>;

pub(super) const INSTALLATION: TableDefinition<(), u128> = TableDefinition::new("installation");
pub(super) const USERS: TableDefinition<u64, &str> = TableDefinition::new("users");
pub(super) const EMAILS: TableDefinition<&str, u64> = TableDefinition::new("emails");
pub(super) const KEYS: Rows<&str> = Rows::new("keys");
pub(super) const INSTANCES: Rows<u128> = Rows::new("instances");
pub(super) const PROVISIONING_SPECS: Rows<u128> = Rows::new("details");
pub(super) const NAMES: TableDefinition<&str, u128> = TableDefinition::new("names");
pub(super) const OWNED: TableDefinition<(u64, u64), u128> = TableDefinition::new("owned");
pub(super) const CLAIMS: Rows<u128> = Rows::new("claims");
pub(super) const ON_NODE: TableDefinition<(&str, u128), ()> = TableDefinition::new("on_node");
pub(super) const PENDING: TableDefinition<u128, ()> = TableDefinition::new("pending");
pub(super) const EVENTS: Rows<(u128, u32)> = Rows::new("events");
pub(super) const LEDGER: Rows<(u128, u32)> = Rows::new("ledger");

pub(super) const NEXT_SEQ: &str = "next_seq";
/// Number of the latest opening.
pub(super) const SESSION: &str = "session";
/// Number of the opening at whose end the file had everything that was in the journal.
pub(super) const CLOSED: &str = "closed";
const EPOCH: &str = "epoch";

/// Moves the rows within a transaction. The caller notes the new format.
pub fn migrate(
    txn: &WriteTransaction,
    found: u64,
    meta: &mut Table<'_, &'static str, u64>,
) -> Result<(), OpenError> {
    match found {
        TREES => move_trees(txn, meta)?,
        UNNAMED_KEYS | UNNUMBERED_EVENTS => Draft::open(txn)?.number_events()?,
        found if found < BEFORE_STEPS => return Err(OpenError::Older { found }),
        _ => {}
    }
    let mut rows = Draft::open(txn)?;
    for (format, step) in (BEFORE_STEPS + 1..).zip(STEPS) {
        if found < format {
            (step.run)(&mut rows)?;
            tracing::info!(format, "the database was migrated: {}", step.done);
        }
    }
    Ok(())
}

fn move_trees(
    txn: &WriteTransaction,
    meta: &mut Table<'_, &'static str, u64>,
) -> Result<(), OpenError> {
    let mut take = |key| -> Result<Option<u64>, Error> {
        let number = meta.remove(key).map_err(internal)?;
        Ok(number.map(|number| number.value()))
    };
    let (session, closed) = (take(SESSION)?, take(CLOSED)?);
    if closed.is_none() || closed != session {
        return Err(OpenError::NotClosed);
    }
    take(EPOCH)?;
    let last_seq = take(NEXT_SEQ)?.map_or(0, |next| next.saturating_sub(1));
    move_rows(txn, last_seq)?;
    tracing::info!("moved the rows of the earlier version's database");
    Ok(())
}

fn move_rows(txn: &WriteTransaction, last_seq: u64) -> Result<(), Error> {
    let mut to = Draft::open(txn)?;
    each(txn, INSTALLATION, |(), id| {
        let id = Uuid::from_u128(id);
        to.put(&t::INSTALLATION, &(), (), &id).map(drop)
    })?;
    each(txn, USERS, |id, email| {
        let (id, email) = (UserId(id), email.to_owned());
        to.put(&t::EMAILS, &*email, (), &id)?;
        to.put(&t::USERS, &id, (), &email).map(drop)
    })?;
    each(txn, KEYS, |id, row| {
        to.put_encoded(&t::KEYS, id, (), row).map(drop)
    })?;
    each(txn, INSTANCES, |id, row| {
        // The version is the last field, so a row without one needs it at its end.
        let row = [row, &[1]].concat();
        to.put_encoded(&t::INSTANCES, &of(id), (), &row).map(drop)
    })?;
    each(txn, PROVISIONING_SPECS, |id, row| {
        to.put_encoded(&t::PROVISIONING_SPECS, &of(id), (), row)
            .map(drop)
    })?;
    each(txn, NAMES, |name, id| {
        to.put(&t::NAMES, name, (), &of(id)).map(drop)
    })?;
    each(txn, OWNED, |(owner, seq), id| {
        let owner = UserId(owner);
        let version = 1;
        to.put(&t::OWNERS, &owner, (), &OwnerRow { version, last_seq })?;
        to.put(&t::OWNED, &owner, seq, &of(id)).map(drop)
    })?;
    each(txn, CLAIMS, |id, row| {
        let claim: Claim = decode(row)?;
        to.put(&t::CLAIMS, &*claim.node.0, of(id), &claim).map(drop)
    })?;
    each(txn, PENDING, |id, ()| {
        to.put(&t::PENDING, &of(id), (), &()).map(drop)
    })?;
    each(txn, EVENTS, |(id, number), row| {
        to.put_encoded(&t::EVENTS, &of(id), number, row).map(drop)
    })?;
    each(txn, LEDGER, |(id, number), row| {
        to.put_encoded(&t::LEDGER, &of(id), number, row).map(drop)
    })?;
    to.number_events()?;
    txn.delete_table(EMAILS).map_err(internal)?;
    txn.delete_table(ON_NODE).map_err(internal)?;
    Ok(())
}

fn of(id: u128) -> InstanceId {
    InstanceId(Uuid::from_u128(id))
}

/// Hands out the rows of a table, and removes it.
fn each<K: Key + 'static, V: Value + 'static>(
    txn: &WriteTransaction,
    definition: TableDefinition<'static, K, V>,
    mut f: impl FnMut(K::SelfType<'_>, V::SelfType<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let table = txn.open_table(definition).map_err(internal)?;
    for row in table.iter().map_err(internal)? {
        let (key, value) = row.map_err(internal)?;
        f(key.value(), value.value())?;
    }
    txn.delete_table(table).map(drop).map_err(internal)
}

/// Removes the journal of format 2, which has nothing that the file has not.
pub fn remove_journal(dir: &Path) {
    let path = dir.join(JOURNAL);
    if let Err(error) = std::fs::remove_file(&path)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!(path = %path.display(), %error, "cannot remove the earlier version's journal");
    }
}

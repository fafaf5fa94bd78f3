//! Moves a database of an earlier format to the present one. Formats 3 and 4 have the rows of format 5,
//! except for events, which are numbered. The rows of format 2 are moved, which had ten tables in trees
//! of their own and a journal before them. The steps of the schema lead from format 5 to the present one.

use super::DbOpenError;
use super::codec::{decode, internal};
use super::draft::Draft;
use super::rows::OwnerRow;
use super::schema::{BEFORE_STEPS, DbSchema};
use super::table::Table as Rows;
use super::tables as t;
use redb::{Key, ReadableTable, Table, TableDefinition, Value, WriteTransaction};
use std::path::Path;
use uuid::Uuid;
use wharf_domain::capacity::Claim;
use wharf_domain::error::Error;
use wharf_domain::ids::{InstanceId, UserId};

/// The format whose rows are moved.
pub(super) const TREES: u64 = 2;
/// The format whose ciphertexts do not name their keys.
const UNNAMED_KEYS: u64 = 3;
/// The format whose events are not numbered.
const UNNUMBERED_EVENTS: u64 = 4;
/// The file of format 2's journal.
pub(super) const JOURNAL: &str = "wharf.journal";

type Tree<K> = TableDefinition<'static, K, &'static [u8]>;

pub(super) const INSTALLATION: TableDefinition<(), u128> = TableDefinition::new("installation");
pub(super) const USERS: TableDefinition<u64, &str> = TableDefinition::new("users");
pub(super) const EMAILS: TableDefinition<&str, u64> = TableDefinition::new("emails");
pub(super) const KEYS: Tree<&str> = Tree::new("keys");
pub(super) const INSTANCES: Tree<u128> = Tree::new("instances");
pub(super) const PROVISIONING_SPECS: Tree<u128> = Tree::new("details");
pub(super) const NAMES: TableDefinition<&str, u128> = TableDefinition::new("names");
pub(super) const OWNED: TableDefinition<(u64, u64), u128> = TableDefinition::new("owned");
pub(super) const CLAIMS: Tree<u128> = Tree::new("claims");
pub(super) const ON_NODE: TableDefinition<(&str, u128), ()> = TableDefinition::new("on_node");
pub(super) const PENDING: TableDefinition<u128, ()> = TableDefinition::new("pending");
pub(super) const EVENTS: Tree<(u128, u32)> = Tree::new("events");
pub(super) const LEDGER: Tree<(u128, u32)> = Tree::new("ledger");

/// Tables of features in format 5.
pub(super) const USERS_5: Rows<UserId, (), String> = Rows::bounded(b'u', 0, "", "");
const EMAILS_5: Rows<String, (), UserId> = Rows::bounded(b'e', 0, "", "");
pub(super) const KEYS_5: Rows<String, (), ()> = Rows::bounded(b'k', 0, "", "");

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
    schema: &'static DbSchema,
) -> Result<(), DbOpenError> {
    match found {
        TREES => move_trees(txn, meta, schema)?,
        UNNAMED_KEYS | UNNUMBERED_EVENTS => Draft::open(txn, schema)?.number_events()?,
        found if found < BEFORE_STEPS => return Err(DbOpenError::Older { found }),
        _ => {}
    }
    let mut rows = Draft::open(txn, schema)?;
    for (format, step) in (BEFORE_STEPS + 1..).zip(schema.steps) {
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
    schema: &'static DbSchema,
) -> Result<(), DbOpenError> {
    let mut take = |key| -> Result<Option<u64>, Error> {
        let number = meta.remove(key).map_err(internal)?;
        Ok(number.map(|number| number.value()))
    };
    let (session, closed) = (take(SESSION)?, take(CLOSED)?);
    if closed.is_none() || closed != session {
        return Err(DbOpenError::NotClosed);
    }
    take(EPOCH)?;
    let last_seq = take(NEXT_SEQ)?.map_or(0, |next| next.saturating_sub(1));
    move_rows(&mut Draft::open(txn, schema)?, txn, last_seq)?;
    tracing::info!("moved the rows of the earlier version's database");
    Ok(())
}

fn move_rows(to: &mut Draft<'_>, txn: &WriteTransaction, last_seq: u64) -> Result<(), Error> {
    each(txn, INSTALLATION, |(), id| {
        to.put(&t::INSTALLATION, (), &Uuid::from_u128(id)).map(drop)
    })?;
    each(txn, USERS, |id, email| {
        let (id, email) = (UserId(id), email.to_owned());
        to.put(&EMAILS_5, &*email, &id)?;
        to.put(&USERS_5, id, &email).map(drop)
    })?;
    each(txn, KEYS, |id, row| {
        to.put_raw(&KEYS_5.key(&id.to_owned(), &()), Some(row))
    })?;
    each(txn, INSTANCES, |id, row| {
        // The version is the last field, so a row without one needs it at its end.
        let row = [row, &[1]].concat();
        to.put_raw(&t::INSTANCES.key(&of(id), &()), Some(&row))
    })?;
    each(txn, PROVISIONING_SPECS, |id, row| {
        to.put_raw(&t::PROVISIONING_SPECS.key(&of(id), &()), Some(row))
    })?;
    each(txn, NAMES, |name, id| {
        to.put(&t::NAMES, name, &of(id)).map(drop)
    })?;
    each(txn, OWNED, |(owner, seq), id| {
        let owner = UserId(owner);
        let version = 1;
        to.put(&t::OWNERS, owner, &OwnerRow { version, last_seq })?;
        to.put(&t::OWNED, (owner, seq), &of(id)).map(drop)
    })?;
    each(txn, CLAIMS, |id, row| {
        let claim: Claim = decode(row)?;
        to.put(&t::CLAIMS, (&*claim.node.0, of(id)), &claim)
            .map(drop)
    })?;
    each(txn, PENDING, |id, ()| {
        to.put(&t::PENDING, of(id), &()).map(drop)
    })?;
    each(txn, EVENTS, |(id, number), row| {
        to.put_raw(&t::EVENTS.key(&of(id), &number), Some(row))
    })?;
    each(txn, LEDGER, |(id, number), row| {
        to.put_raw(&t::LEDGER.key(&of(id), &number), Some(row))
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

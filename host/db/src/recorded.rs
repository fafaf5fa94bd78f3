//! The instances of each owner with a ledger or events: filled once for earlier versions, and checked.

use super::codec::internal;
use super::commit::commit_durably;
use super::draft::Draft;
use super::findings::Findings;
use super::read::Read;
use super::schema::DbSchema;
use super::tables as t;
use super::tree::{ReadRows, Rows as _};
use std::collections::BTreeSet;
use wharf_domain::error::Error;
use wharf_domain::ids::{InstanceId, UserId};

type Recorded = BTreeSet<(UserId, InstanceId)>;

/// Fills the table in a database of an earlier version.
pub fn fill(file: &redb::Database, schema: &'static DbSchema) -> Result<(), Error> {
    let txn = file.begin_write().map_err(internal)?;
    let mut rows = Draft::open(&txn, schema)?;
    if rows.get(&t::RECORDED_ALL, ())?.is_some() {
        drop(rows);
        return txn.abort().map_err(internal);
    }
    for (owner, id) in ledgers(&rows)? {
        rows.put(&t::RECORDED, (owner, id), &())?;
    }
    rows.put(&t::RECORDED_ALL, (), &())?;
    drop(rows);
    commit_durably(txn)
}

/// Compares the table with the ledgers.
pub fn check(rows: &ReadRows, wrong: &mut Findings) -> Result<(), Error> {
    let mut recorded = Recorded::new();
    for row in rows.all(&t::RECORDED)? {
        let (owner, id, ()) = row?;
        recorded.insert((owner, id));
    }
    let ledgers = ledgers(rows)?;
    for (owner, id) in ledgers.difference(&recorded) {
        wrong.push(format!(
            "{id}: its ledger is not recorded for user {}",
            owner.0
        ));
    }
    for (owner, id) in recorded.difference(&ledgers) {
        // The events of a closed ledger may remain.
        if rows.events(*id)?.is_empty() {
            wrong.push(format!(
                "{id}: recorded for user {} without a ledger",
                owner.0
            ));
        }
    }
    for row in rows.all(&t::CLOSED)? {
        let (owner, (_, id), _) = row?;
        if ledgers.contains(&(owner, id)) {
            wrong.push(format!("{id}: its closed ledger was not removed"));
        }
    }
    Ok(())
}

fn ledgers(rows: &impl Read) -> Result<Recorded, Error> {
    let mut found = Recorded::new();
    rows.each_ledger(|id, entries| {
        found.extend(entries.first().map(|entry| (entry.owner, id)));
    })?;
    Ok(found)
}

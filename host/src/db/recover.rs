//! After a crash the journal has commits that the file has not.

use super::apply::Tables;
use super::codec::internal;
use super::commit::commit_durably;
use super::journal::{Journal, Period, ReplayError, Storage};
use super::read::{Read, Snapshot};
use super::tables::NO_SESSION;
use redb::Database;

/// Begins a session of a database: its journal, all of which the file has then. Stopped half-way it is
/// begun again by the next start. `closed` is whether the file had all of it before.
pub fn recover(
    file: &Database,
    storage: Box<dyn Storage>,
    limit: u64,
    closed: bool,
) -> Result<Journal, ReplayError> {
    let installation = Snapshot::open(file).map_err(internal)?.installation()?;
    let txn = file.begin_write().map_err(internal)?;
    let mut tables = Tables::open(&txn).map_err(internal)?;
    let before = tables.period()?;
    let mut journal = Journal::new(storage, limit, installation.as_u128(), before)?;
    let records = journal.replay(|record| tables.redo(record))?;
    if !closed {
        journal.expect_the_end()?;
    }
    let period = Period {
        epoch: before.epoch + 1,
        session: uuid::Uuid::new_v4().as_u64_pair().1,
    };
    tables.set_period(period)?;
    tables.set_closed(NO_SESSION)?;
    drop(tables);
    commit_durably(txn)?;
    journal.restart(period);
    if records > 0 {
        tracing::info!(records, "the database has taken over what its journal had");
    }
    Ok(journal)
}

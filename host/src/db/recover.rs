//! After a crash the journal has commits that the file has not.

use super::apply::Tables;
use super::codec::internal;
use super::journal::{Journal, ReplayError};
use redb::Database;

/// Writes them to the file. Stopped half-way it is begun again by the next start.
pub fn recover(file: &Database, journal: &mut Journal) -> Result<(), ReplayError> {
    let txn = file.begin_write().map_err(internal)?;
    let mut tables = Tables::open(&txn).map_err(internal)?;
    let epoch = tables.epoch()?;
    let records = journal.replay(epoch, |record| tables.redo(record))?;
    if records == 0 {
        drop(tables);
        return Ok(txn.abort().map_err(internal)?);
    }
    tables.set_epoch(epoch + 1)?;
    drop(tables);
    txn.commit().map_err(internal)?;
    journal.restart(epoch + 1);
    tracing::info!(records, "the database has taken over what its journal had");
    Ok(())
}

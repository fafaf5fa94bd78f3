//! Opening the files, and bringing older formats up to date.

use super::OpenError;
use super::apply::Tables;
use super::codec::internal;
use super::commit::commit_durably;
use super::journal::{self, Journal, LIMIT};
use super::read::{Read, Snapshot};
use super::recover::recover;
use super::tables::{CLOSED, NO_SESSION, SESSION};
use crate::domain::error::Error;
use crate::private;
use redb::{Builder, Database, ReadableTable};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The format this code writes.
const FORMAT: u64 = 2;
/// One whose rows are the same, but for which there was no journal: a Wharf that knows no other would
/// not see what is in it.
const WITHOUT_JOURNAL: u64 = 1;

/// Opens or makes `wharf.redb` and `wharf.journal` in a directory.
pub fn open(dir: &Path) -> Result<(Database, Journal), OpenError> {
    let path = dir.join("wharf.redb");
    let broken =
        |error: &dyn std::fmt::Display| OpenError::Broken(format!("{}: {error}", path.display()));
    let file = private::open(&path).map_err(|e| broken(&e))?;
    let whole = Arc::new(AtomicBool::new(true));
    let noted = Arc::clone(&whole);
    let unclosed = move |_: &mut redb::RepairSession| {
        // As a Wharf of before has left it, which did not write what makes this needless; or a
        // panic within redb.
        if noted.swap(false, Ordering::Relaxed) {
            tracing::warn!("all of the database is checked");
        }
    };
    let mut builder = Builder::new();
    let file = builder.set_repair_callback(unclosed).create_file(file);
    let file = file.map_err(|error| match error {
        redb::DatabaseError::DatabaseAlreadyOpen => OpenError::InUse(dir.display().to_string()),
        other => broken(&other),
    })?;
    initialise(&file)?;
    let journal = open_journal(dir, &file, whole.load(Ordering::Relaxed))?;
    Ok((file, journal))
}

fn open_journal(dir: &Path, file: &Database, whole: bool) -> Result<Journal, OpenError> {
    let path = dir.join("wharf.journal");
    let broken =
        |error: &dyn std::fmt::Display| OpenError::Broken(format!("{}: {error}", path.display()));
    let closed = is_closed(file, whole).map_err(|e| broken(&e))?;
    if !closed {
        tracing::warn!("the database was not closed");
    }
    let session = number(file, SESSION).map_err(|e| broken(&e))?;
    if !closed && session.is_some() && !path.exists() {
        note_unclosed(file).map_err(|e| broken(&e))?;
        return Err(broken(
            &"missing, and the database was not closed: its latest changes are there. Put it back, or \
              an empty file in its place to go on without them",
        ));
    }
    let storage = journal::open(&path).map_err(|e| broken(&e))?;
    private::sync_names(dir).map_err(|e| broken(&e))?;
    recover(file, Box::new(storage), LIMIT, closed).map_err(|e| broken(&e))
}

/// Whether the file has everything that its journal has. A Wharf of before wrote no row of it, but let
/// redb repair a file that had not; `whole` is whether that was not done.
pub(super) fn is_closed(file: &Database, whole: bool) -> Result<bool, Error> {
    Ok(match number(file, CLOSED)? {
        Some(closed) => number(file, SESSION)? == Some(closed),
        None => whole,
    })
}

/// What redb has repaired it takes for closed the next time.
fn note_unclosed(file: &Database) -> Result<(), Error> {
    let txn = file.begin_write().map_err(internal)?;
    let mut tables = Tables::open(&txn).map_err(internal)?;
    tables.set_closed(NO_SESSION)?;
    drop(tables);
    commit_durably(txn)
}

/// One of the meta table.
fn number(file: &Database, key: &str) -> Result<Option<u64>, Error> {
    let rows = Snapshot::open(file).map_err(internal)?;
    let number = rows.meta()?.get(key).map_err(internal)?;
    Ok(number.map(|number| number.value()))
}

/// Brings a file to this format, or refuses it.
pub(super) fn initialise(file: &Database) -> Result<(), OpenError> {
    let broken = |error: Error| OpenError::Broken(error.to_string());
    let txn = file.begin_write().map_err(internal).map_err(broken)?;
    let mut tables = Tables::open(&txn).map_err(internal).map_err(broken)?;
    match tables.format().map_err(broken)? {
        Some(FORMAT) => {
            drop(tables);
            return txn.abort().map_err(internal).map_err(broken);
        }
        Some(WITHOUT_JOURNAL) => {}
        None => tables
            .initialise(uuid::Uuid::new_v4().as_u128())
            .map_err(broken)?,
        Some(found) => {
            return Err(OpenError::Newer {
                found: u32::try_from(found).unwrap_or(u32::MAX),
                known: u32::try_from(FORMAT).unwrap_or(u32::MAX),
            });
        }
    }
    tables.set_format(FORMAT).map_err(broken)?;
    drop(tables);
    commit_durably(txn).map_err(broken)
}

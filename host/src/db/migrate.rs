//! Opening the files, and bringing older formats up to date.

use super::OpenError;
use super::apply::Tables;
use super::codec::internal;
use super::journal::{self, Journal, LIMIT, ReplayError, Storage, open_private, sync_names};
use super::read::{Read, Snapshot};
use super::recover::recover;
use crate::domain::error::Error;
use redb::{Builder, Database};
use std::io;
use std::path::Path;
use std::sync::Once;

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
    let file = open_private(&path).map_err(|e| broken(&e))?;
    let told = Once::new();
    let unclosed = move |_: &mut redb::RepairSession| {
        told.call_once(|| tracing::warn!("the database was not closed; all of it is checked"));
    };
    let mut builder = Builder::new();
    let file = builder.set_repair_callback(unclosed).create_file(file);
    let file = file.map_err(|error| match error {
        redb::DatabaseError::DatabaseAlreadyOpen => OpenError::InUse(dir.display().to_string()),
        other => broken(&other),
    })?;
    initialise(&file)?;
    let journal = open_journal(dir, &file)?;
    Ok((file, journal))
}

fn open_journal(dir: &Path, file: &Database) -> Result<Journal, OpenError> {
    let path = dir.join("wharf.journal");
    let broken = |error: io::Error| OpenError::Broken(format!("{}: {error}", path.display()));
    let storage = journal::open(&path).map_err(broken)?;
    sync_names(dir).map_err(broken)?;
    continued(Box::new(storage), LIMIT, file)
        .map_err(|error| OpenError::Broken(format!("{}: {error}", path.display())))
}

/// The journal of a database, which has taken over all of it.
pub(super) fn continued(
    storage: Box<dyn Storage>,
    limit: u64,
    file: &Database,
) -> Result<Journal, ReplayError> {
    let installation = Snapshot::open(file).map_err(internal)?.installation()?;
    let mut journal = Journal::new(storage, limit, installation.as_u128())?;
    recover(file, &mut journal)?;
    Ok(journal)
}

/// Brings a file to this format, or refuses it.
pub(super) fn initialise(file: &Database) -> Result<(), OpenError> {
    let broken = |error: Error| OpenError::Broken(error.to_string());
    let txn = file.begin_write().map_err(internal).map_err(broken)?;
    let mut tables = Tables::open(&txn).map_err(internal).map_err(broken)?;
    match tables.format().map_err(broken)? {
        Some(FORMAT | WITHOUT_JOURNAL) => {}
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
    txn.commit().map_err(internal).map_err(broken)
}

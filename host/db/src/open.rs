//! Opens the file, and makes sure that its rows have the format of this version.

use super::OpenError;
use super::codec::internal;
use super::commit::commit_durably;
use super::migrate;
use super::table::Draft;
use super::tables::INSTALLATION;
use redb::{Builder, Database, ReadableTable, TableDefinition};
use std::fmt::Display;
use std::path::Path;
use uuid::Uuid;
use wharf_domain::error::Error;

/// The format that this version writes.
const FORMAT: u64 = 3;
/// A table of its own in every format, so that every version can read it.
pub(super) const META: TableDefinition<&str, u64> = TableDefinition::new("meta");
const FORMAT_KEY: &str = "format";

/// Memory for pages of the file, in bytes; redb's default is 1 GiB. The first look at the nodes after
/// a start reads every instance, and would leave as much of the file in memory as this allows.
const CACHE: usize = 256 << 20;

/// Opens or makes `wharf.redb` in a directory.
pub fn open(dir: &Path) -> Result<Database, OpenError> {
    let path = dir.join("wharf.redb");
    let broken = |error: &dyn Display| OpenError::Broken(format!("{}: {error}", path.display()));
    let file = wharf_secure_fs::open(&path).map_err(|e| broken(&e))?;
    // Every commit has the allocator's state, so redb repairs only a file whose closing panicked.
    let repairs = |_: &mut redb::RepairSession| tracing::warn!("checking the whole database");
    let file = Builder::new()
        .set_cache_size(CACHE)
        .set_repair_callback(repairs)
        .create_file(file)
        .map_err(|error| match error {
            redb::DatabaseError::DatabaseAlreadyOpen => OpenError::InUse(dir.display().to_string()),
            other => broken(&other),
        })?;
    wharf_secure_fs::sync_names(dir).map_err(|e| broken(&e))?;
    match initialise(&file)? {
        Opened::New => {}
        // A crash may have come between a migration and the removal.
        Opened::Present | Opened::Migrated => migrate::remove_journal(dir),
    }
    Ok(file)
}

/// The work that opening a file took.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Opened {
    New,
    Present,
    Migrated,
}

/// Brings a file to the present format, or refuses it.
pub(super) fn initialise(file: &Database) -> Result<Opened, OpenError> {
    let txn = file.begin_write().map_err(internal)?;
    let mut meta = txn.open_table(META).map_err(internal)?;
    let found = meta.get(FORMAT_KEY).map_err(internal)?.map(|f| f.value());
    let opened = match found {
        Some(FORMAT) => {
            drop(meta);
            txn.abort().map_err(internal)?;
            return Ok(Opened::Present);
        }
        Some(found) if found > FORMAT => {
            return Err(OpenError::Newer {
                found,
                known: FORMAT,
            });
        }
        Some(found) => {
            migrate::migrate(&txn, found, &mut meta)?;
            Opened::Migrated
        }
        None => {
            Draft::open(&txn)?.put(&INSTALLATION, &(), (), &Uuid::new_v4())?;
            Opened::New
        }
    };
    meta.insert(FORMAT_KEY, FORMAT).map_err(internal)?;
    drop(meta);
    commit_durably(txn)?;
    Ok(opened)
}

impl From<Error> for OpenError {
    fn from(error: Error) -> Self {
        Self::Broken(error.to_string())
    }
}

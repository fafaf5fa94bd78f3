//! Opening the file, and bringing older formats up to date.

use super::OpenError;
use super::apply::Tables;
use redb::{Builder, Database};
use std::fs::{OpenOptions, Permissions};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Once;

/// The format this code writes.
const FORMAT: u64 = 1;
/// Nobody else's to read, whatever the mode of its directory: addresses, events and bills are in it.
const PRIVATE: u32 = 0o600;

/// Opens or makes `wharf.redb` in a directory.
pub fn open(dir: &Path) -> Result<Database, OpenError> {
    let path = dir.join("wharf.redb");
    let broken =
        |error: &dyn std::fmt::Display| OpenError::Broken(format!("{}: {error}", path.display()));
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).mode(PRIVATE);
    let file = options.open(&path).map_err(|e| broken(&e))?;
    // It may be of a time when it was not made so.
    file.set_permissions(Permissions::from_mode(PRIVATE))
        .map_err(|e| broken(&e))?;
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
    Ok(file)
}

/// Brings a file to this format, or refuses it.
pub(super) fn initialise(file: &Database) -> Result<(), OpenError> {
    let broken = |error: redb::Error| OpenError::Broken(error.to_string());
    let txn = file.begin_write().map_err(|e| broken(e.into()))?;
    {
        let mut tables = Tables::open(&txn).map_err(|e| broken(e.into()))?;
        match tables.format().map_err(|e| broken(e.into()))? {
            Some(FORMAT) => {}
            None => tables
                .initialise(FORMAT, uuid::Uuid::new_v4().as_u128())
                .map_err(|e| broken(e.into()))?,
            Some(found) => {
                return Err(OpenError::Newer {
                    found: u32::try_from(found).unwrap_or(u32::MAX),
                    known: u32::try_from(FORMAT).unwrap_or(u32::MAX),
                });
            }
        }
    }
    txn.commit().map_err(|e| broken(e.into()))
}

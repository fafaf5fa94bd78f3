//! Opens the file, and makes sure that its rows have the format of this version.

use super::DbOpenError;
use super::codec::internal;
use super::commit::commit_durably;
use super::draft::Draft;
use super::guard::{guarded, opening};
use super::migrate;
use super::pages::{self, Checked, Pages};
use super::schema::DbSchema;
use super::tables::INSTALLATION;
use super::upgrade;
use redb::backends::FileBackend;
use redb::{
    Builder, Database, DatabaseError, ReadableDatabase, StorageBackend, StorageError,
    TableDefinition, TableError,
};
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use uuid::Uuid;
use wharf_domain::error::Error;

/// A table of its own in every format, so that every version can read it.
pub(super) const META: TableDefinition<&str, u64> = TableDefinition::new("meta");
pub(super) const FORMAT_KEY: &str = "format";

/// Memory for pages of the file, in bytes; redb's default is 1 GiB. The first look at the nodes after
/// a start reads every instance, and would leave as much of the file in memory as this allows.
const CACHE: usize = 256 << 20;

/// The first bytes of the files of formats up to 5, which redb wrote without checksums of pages.
const PLAIN: &[u8] = b"redb\x1A\x0A\xA9\x0D\x0A";

/// Files that only a start with a database leaves in its directory.
const REMAINS: [&str; 3] = ["secret.key", "plugins-cache", migrate::JOURNAL];

/// The database's file in a directory.
pub fn path_in(dir: &Path) -> PathBuf {
    dir.join("wharf.redb")
}

/// An open file, and its pages if they have checksums.
pub struct Opened {
    pub rows: Database,
    pub pages: Option<Arc<Pages>>,
}

/// Opens the database of a directory, or makes it in a directory without remains of one. A database of an
/// earlier format is migrated to a new file if that leaves a reserve in MiB free.
pub fn open(
    dir: &Path,
    reserve_mib: u64,
    schema: &'static DbSchema,
) -> Result<Opened, DbOpenError> {
    let path = path_in(dir);
    opening(&path);
    match fs::metadata(&path) {
        Ok(found) if found.len() == 0 => Err(DbOpenError::Empty(path)),
        Ok(_) => open_present(dir, &path, reserve_mib, schema),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let remains = REMAINS.map(|name| dir.join(name));
            let remains: Vec<_> = remains.into_iter().filter(|path| path.exists()).collect();
            if remains.is_empty() {
                make(dir, &path, schema)
            } else {
                Err(DbOpenError::Missing {
                    path,
                    remains: list(&remains),
                })
            }
        }
        Err(error) => Err(unreadable(&path, error)),
    }
}

fn list(paths: &[PathBuf]) -> String {
    let paths: Vec<_> = paths.iter().map(|p| p.display().to_string()).collect();
    paths.join(" and ")
}

fn open_present(
    dir: &Path,
    path: &Path,
    reserve_mib: u64,
    schema: &'static DbSchema,
) -> Result<Opened, DbOpenError> {
    let file = wharf_secure_fs::open(path).map_err(|error| unreadable(path, error))?;
    let mut file = open_file(path, file)?;
    let found = found_format(path, &file.rows, schema)?;
    if found < schema.format() || file.pages.is_none() {
        file = upgrade::upgrade(path, file, found, reserve_mib, schema)?;
    }
    // A crash may have come between a migration and the removal.
    migrate::remove_journal(dir);
    Ok(file)
}

/// Refuses a file that another process has open. Holds until the file is closed.
pub(super) fn lock(path: &Path, file: &File) -> Result<(), DbOpenError> {
    file.try_lock_shared().map_err(|error| match error {
        TryLockError::WouldBlock => DbOpenError::InUse(path.display().to_string()),
        TryLockError::Error(error) => unreadable(path, error),
    })
}

/// Opens a file that has the rows of a database, after a repair if it was not closed.
pub fn open_file(path: &Path, mut file: File) -> Result<Opened, DbOpenError> {
    let mut magic = [0; PLAIN.len()];
    let read = file.rewind().and_then(|()| file.read_exact(&mut magic));
    match read {
        Ok(()) if magic == PLAIN => {
            let file = FileBackend::new(file);
            let file = file.map_err(|error| of_redb(path, error))?;
            let rows = open_rows(path, file)?;
            Ok(Opened { rows, pages: None })
        }
        Ok(()) if magic == *pages::MAGIC => open_checked(path, file),
        Err(error) if error.kind() != ErrorKind::UnexpectedEof => Err(unreadable(path, error)),
        _ => Err(DbOpenError::Foreign(path.to_owned())),
    }
}

/// Opens a file of any format as redb's, for tests that change rows of a stopped server.
pub fn rows_in(path: &Path) -> Result<Database, DbOpenError> {
    let file = wharf_secure_fs::open(path).map_err(|error| unreadable(path, error))?;
    Ok(open_file(path, file)?.rows)
}

/// Opens or makes a file whose pages have checksums.
pub fn open_checked(path: &Path, file: File) -> Result<Opened, DbOpenError> {
    let file = FileBackend::new(file).map_err(|error| of_redb(path, error))?;
    open_backend(path, file)
}

/// Opens or makes a database on a backend, in place of a file.
pub fn open_on(
    backend: impl StorageBackend,
    schema: &'static DbSchema,
) -> Result<Opened, DbOpenError> {
    let path = Path::new("");
    let opened = open_backend(path, backend)?;
    initialise(path, &opened.rows, schema, true)?;
    Ok(opened)
}

fn open_backend(path: &Path, backend: impl StorageBackend) -> Result<Opened, DbOpenError> {
    let pages = Pages::open(backend)
        .map_err(|error| of_redb(path, DatabaseError::Storage(StorageError::Io(error))))?;
    let rows = open_rows(path, Checked(Arc::clone(&pages)))?;
    Ok(Opened {
        rows,
        pages: Some(pages),
    })
}

fn open_rows(path: &Path, file: impl StorageBackend) -> Result<Database, DbOpenError> {
    // Every commit has the allocator's state, so redb repairs only a file whose closing panicked.
    let repairs = |_: &mut redb::RepairSession| tracing::warn!("checking the whole database");
    let opened = guarded(|| {
        Builder::new()
            .set_cache_size(CACHE)
            .set_repair_callback(repairs)
            .create_with_backend(file)
    });
    opened
        .map_err(|why| damaged(path, why))?
        .map_err(|error| of_redb(path, error))
}

fn damaged(path: &Path, why: String) -> DbOpenError {
    DbOpenError::Damaged {
        path: path.to_owned(),
        why,
    }
}

fn of_redb(path: &Path, error: DatabaseError) -> DbOpenError {
    match error {
        DatabaseError::DatabaseAlreadyOpen => DbOpenError::InUse(path.display().to_string()),
        DatabaseError::Storage(StorageError::Io(error)) if !of_content(&error) => {
            unreadable(path, error)
        }
        other => damaged(path, other.to_string()),
    }
}

/// Whether an error is one of the content rather than of the device: redb reads beyond the end of a
/// file that was cut.
fn of_content(error: &io::Error) -> bool {
    let kinds = [
        ErrorKind::UnexpectedEof,
        ErrorKind::InvalidData,
        ErrorKind::InvalidInput,
    ];
    kinds.contains(&error.kind())
}

pub(super) fn unreadable(path: &Path, source: io::Error) -> DbOpenError {
    DbOpenError::Unreadable {
        path: path.to_owned(),
        source,
    }
}

/// Makes a database under another name first, so that a crash leaves none that is unfinished.
fn make(dir: &Path, path: &Path, schema: &'static DbSchema) -> Result<Opened, DbOpenError> {
    let failed = |error| unreadable(path, error);
    let draft = wharf_secure_fs::draft(path);
    let file = wharf_secure_fs::open_new(&draft).map_err(failed)?;
    let made = open_checked(&draft, file).and_then(|file| {
        initialise(&draft, &file.rows, schema, true)?;
        Ok(file)
    });
    match made {
        Ok(made) => match wharf_secure_fs::place(&draft, path) {
            Ok(()) => Ok(made),
            // Another process has made it in the meantime.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                Err(DbOpenError::InUse(dir.display().to_string()))
            }
            Err(error) => Err(failed(error)),
        },
        Err(error) => {
            let _ = fs::remove_file(&draft);
            Err(error)
        }
    }
}

/// Brings a file to the present format, or refuses it. Only a `new` file may have no format.
pub(super) fn initialise(
    path: &Path,
    file: &Database,
    schema: &'static DbSchema,
    new: bool,
) -> Result<(), DbOpenError> {
    let known = schema.format();
    whole(path, || {
        let found = match format(file)? {
            Some(found) if found == known => return Ok(()),
            Some(found) if found > known => return Err(DbOpenError::Newer { found, known }),
            None if !new => return Err(DbOpenError::Foreign(path.to_owned())),
            found => found,
        };
        let txn = file.begin_write().map_err(internal)?;
        let mut meta = txn.open_table(META).map_err(internal)?;
        match found {
            Some(found) => migrate::migrate(&txn, found, &mut meta, schema)?,
            None => {
                Draft::open(&txn, schema)?.put(&INSTALLATION, (), &Uuid::new_v4())?;
            }
        }
        meta.insert(FORMAT_KEY, known).map_err(internal)?;
        drop(meta);
        commit_durably(txn)?;
        Ok(())
    })
}

/// Reads or writes rows of a file. An error of them is one of the file.
pub(super) fn whole<T>(
    path: &Path,
    f: impl FnOnce() -> Result<T, DbOpenError>,
) -> Result<T, DbOpenError> {
    let done = guarded(f).map_err(|why| damaged(path, why))?;
    done.map_err(|error| match error {
        DbOpenError::Rows(error) => damaged(path, error.chain().to_string()),
        other => other,
    })
}

/// The format of a file that is not newer than this version.
pub(super) fn found_format(
    path: &Path,
    file: &Database,
    schema: &DbSchema,
) -> Result<u64, DbOpenError> {
    let known = schema.format();
    match whole(path, || Ok(format(file)?))? {
        Some(found) if found > known => Err(DbOpenError::Newer { found, known }),
        Some(found) => Ok(found),
        None => Err(DbOpenError::Foreign(path.to_owned())),
    }
}

/// The format that a file has; none in a file of another program.
pub(super) fn format(file: &Database) -> Result<Option<u64>, Error> {
    let txn = file.begin_read().map_err(internal)?;
    match txn.open_table(META) {
        Ok(meta) => {
            let format = meta.get(FORMAT_KEY).map_err(internal)?;
            Ok(format.map(|format| format.value()))
        }
        Err(TableError::Storage(error)) => Err(internal(error)),
        Err(_) => Ok(None),
    }
}

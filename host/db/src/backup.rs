//! Backup and restore: a copy of a database. It gets its name when it is complete.

use super::DbOpenError;
use super::codec::internal;
use super::commit::commit_durably;
use super::guard::{guarded, opening};
use super::open::{FORMAT_KEY, META, format, lock, open_checked, open_file, unreadable};
use super::read::Read as _;
use super::schema::DbSchema;
use super::tree::{ReadRows, Rows as _, TREE};
use redb::{Database, ReadableTable};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use wharf_domain::secret::Fingerprint;

/// Rows between two looks at whether the copy is still wanted.
const STEP: usize = 4096;

/// A copy that was made.
#[derive(Debug, Clone, Copy)]
pub struct Copied {
    /// Number of rows; none if the file was copied as it is.
    pub rows: usize,
    /// The key that the secrets in it need.
    pub key: Option<Fingerprint>,
}

/// Writes the last commit to a new file, which is a database. `wanted` turns false to end early.
pub fn backup(
    from: &Database,
    path: &Path,
    format: u64,
    wanted: impl Fn() -> bool,
) -> Result<Copied, DbOpenError> {
    refuse_present(path)?;
    let draft = wharf_secure_fs::draft(path);
    let copied = copy_rows(from, &draft, format, wanted).and_then(|copied| {
        place(&draft, path)?;
        Ok(copied)
    });
    if copied.is_err() {
        let _ = fs::remove_file(&draft);
    }
    copied
}

fn copy_rows(
    from: &Database,
    draft: &Path,
    format: u64,
    wanted: impl Fn() -> bool,
) -> Result<Copied, DbOpenError> {
    let file = wharf_secure_fs::open_new(draft).map_err(|error| unreadable(draft, error))?;
    let to = open_checked(draft, file)?.rows;
    copy_tree(from, &to, format, wanted)
}

/// Copies all rows into an empty file, with their format.
pub(super) fn copy_tree(
    from: &Database,
    to: &Database,
    format: u64,
    wanted: impl Fn() -> bool,
) -> Result<Copied, DbOpenError> {
    let snapshot = ReadRows::open(from)?;
    let key = snapshot.key_fingerprint()?;
    let txn = to.begin_write().map_err(internal)?;
    let mut rows = 0;
    {
        let mut tree = txn.open_table(TREE).map_err(internal)?;
        for row in snapshot.tree().iter().map_err(internal)? {
            let (key, value) = row.map_err(internal)?;
            tree.insert(key.value(), value.value()).map_err(internal)?;
            rows += 1;
            if rows % STEP == 0 && !wanted() {
                return Err(internal("the backup was given up").into());
            }
        }
        let mut meta = txn.open_table(META).map_err(internal)?;
        meta.insert(FORMAT_KEY, format).map_err(internal)?;
    }
    commit_durably(txn)?;
    Ok(Copied { rows, key })
}

/// Puts a backup in the place of the database of a directory that has none.
pub fn restore(from: &Path, dir: &Path, schema: &DbSchema) -> Result<Copied, DbOpenError> {
    let path = super::open::path_in(dir);
    refuse_present(&path)?;
    let mut source = fs::File::open(from).map_err(|error| unreadable(from, error))?;
    lock(from, &source)?;
    let draft = wharf_secure_fs::draft(&path);
    let restored = copy_file(from, &mut source, &draft, schema.format()).and_then(|copied| {
        place(&draft, &path)?;
        Ok(copied)
    });
    if restored.is_err() {
        let _ = fs::remove_file(&draft);
    }
    restored
}

fn copy_file(
    from: &Path,
    source: &mut fs::File,
    draft: &Path,
    known: u64,
) -> Result<Copied, DbOpenError> {
    let failed = |error| unreadable(draft, error);
    let mut file = wharf_secure_fs::open_new(draft).map_err(failed)?;
    io::copy(source, &mut file).map_err(failed)?;
    opening(from);
    let mut copy = open_file(from, file.try_clone().map_err(failed)?)?.rows;
    check_pages(from, &mut copy)?;
    let key = match format(&copy)? {
        None => return Err(DbOpenError::Foreign(from.to_owned())),
        Some(found) if found == known => ReadRows::open(&copy)?.key_fingerprint()?,
        Some(found) if found > known => return Err(DbOpenError::Newer { found, known }),
        Some(_) => None,
    };
    drop(copy);
    file.sync_all().map_err(failed)?;
    Ok(Copied { rows: 0, key })
}

/// Compares all pages with their checksums.
pub fn check_pages(path: &Path, file: &mut Database) -> Result<(), DbOpenError> {
    let damaged = |why: String| DbOpenError::Damaged {
        path: path.to_owned(),
        why,
    };
    let checked = guarded(|| file.check_integrity()).map_err(damaged)?;
    match checked {
        Ok(true) => Ok(()),
        Ok(false) => Err(damaged("pages do not have their checksums".to_owned())),
        Err(error) => Err(damaged(error.to_string())),
    }
}

fn refuse_present(path: &Path) -> Result<(), DbOpenError> {
    match fs::symlink_metadata(path) {
        Ok(_) => Err(DbOpenError::Present(path.to_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(unreadable(path, error)),
    }
}

fn place(draft: &Path, path: &Path) -> Result<(), DbOpenError> {
    wharf_secure_fs::place(draft, path).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => DbOpenError::Present(path.to_owned()),
        _ => unreadable(path, error),
    })
}

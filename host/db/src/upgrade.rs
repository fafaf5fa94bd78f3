//! Moves the database of an earlier version to a new file. The earlier file is kept under another name, so
//! that an upgrade can be taken back.

use super::DbOpenError;
use super::backup::copy_tree;
use super::migrate::TREES;
use super::open::{Opened, initialise, open_checked, open_file, path_in, unreadable, whole};
use super::schema::DbSchema;
use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Room in MiB beside the new file and the reserve of the disk.
const SPARE_MIB: u64 = 64;

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".");
    name.push(suffix);
    name.into()
}

/// The name of the file of an earlier format.
fn kept_as(path: &Path, format: u64) -> PathBuf {
    with_suffix(path, &format!("format-{format}"))
}

/// Copies a database of an earlier format into a new file, migrates the copy, and puts it in the place of
/// the earlier file, which gets another name.
pub fn upgrade(
    path: &Path,
    from: Opened,
    found: u64,
    reserve_mib: u64,
    schema: &'static DbSchema,
) -> Result<Opened, DbOpenError> {
    if found < TREES {
        return Err(DbOpenError::Older { found });
    }
    let failed = |error| unreadable(path, error);
    let length = fs::metadata(path).map_err(failed)?.len();
    refuse_small_disk(path, length, reserve_mib)?;
    let kept = kept_as(path, found);
    tracing::info!(
        format = found,
        bytes = length,
        "the database is migrated to a new file"
    );
    // A crash may have left one, and the lock of the file keeps other processes from it.
    let draft = with_suffix(path, "migrating");
    remove(&draft).map_err(failed)?;
    let made = copy(path, &from, found, &draft, schema).and_then(|made| {
        // The earlier version may have left one before the upgrade was taken back.
        remove(&kept).map_err(failed)?;
        fs::hard_link(path, &kept).map_err(failed)?;
        fs::rename(&draft, path).map_err(failed)?;
        sync_names(path).map_err(failed)?;
        Ok(made)
    });
    let made = made.inspect_err(|_| drop(fs::remove_file(&draft)))?;
    // Its lock kept other processes from the name until here.
    drop(from);
    let (from, to) = (found, schema.format());
    tracing::info!(
        from,
        to,
        kept = %kept.display(),
        "the database was migrated; the earlier file is kept until `wharf compact`"
    );
    Ok(made)
}

fn copy(
    path: &Path,
    from: &Opened,
    found: u64,
    draft: &Path,
    schema: &'static DbSchema,
) -> Result<Opened, DbOpenError> {
    let file = wharf_secure_fs::open_new(draft).map_err(|error| unreadable(draft, error))?;
    let made = open_checked(draft, file)?;
    if found == TREES {
        // Its rows are in one tree only after the migration.
        let plain = migrated_in_place(path, draft, schema)?;
        whole(path, || {
            copy_tree(&plain.rows, &made.rows, schema.format(), || true)
        })?;
    } else {
        whole(path, || copy_tree(&from.rows, &made.rows, found, || true))?;
        initialise(path, &made.rows, schema, false)?;
    }
    Ok(made)
}

/// A copy of the file without a name.
fn migrated_in_place(
    path: &Path,
    draft: &Path,
    schema: &'static DbSchema,
) -> Result<Opened, DbOpenError> {
    let failed = |error| unreadable(path, error);
    let draft = wharf_secure_fs::draft(draft);
    let mut copy = wharf_secure_fs::open_new(&draft).map_err(failed)?;
    fs::remove_file(&draft).map_err(failed)?;
    io::copy(&mut fs::File::open(path).map_err(failed)?, &mut copy).map_err(failed)?;
    let copy = open_file(path, copy)?;
    initialise(path, &copy.rows, schema, false)?;
    Ok(copy)
}

fn refuse_small_disk(path: &Path, length: u64, reserve_mib: u64) -> Result<(), DbOpenError> {
    // Below the reserve the server would refuse the changes of users.
    let needed = length
        .div_ceil(1 << 20)
        .saturating_add(reserve_mib)
        .saturating_add(SPARE_MIB);
    let free = rustix::fs::statvfs(path).map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize));
    match free.map(|free| free >> 20) {
        Ok(free) if free < needed => Err(DbOpenError::NoRoom {
            path: path.to_owned(),
            needed,
            free,
        }),
        // The copy itself finds out where the operating system does not say.
        _ => Ok(()),
    }
}

fn sync_names(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), wharf_secure_fs::sync_names)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The number of the database's file on its disk. An upgrade gives the number to the file that it keeps.
pub fn inode(dir: &Path) -> Option<u64> {
    fs::metadata(path_in(dir)).ok().map(|file| file.ino())
}

/// Removes the earlier files of a directory, except one. Returns the number of bytes in them.
pub fn remove_kept(dir: &Path, except: Option<u64>, schema: &DbSchema) -> Result<u64, DbOpenError> {
    let path = path_in(dir);
    let failed = |error| unreadable(&path, error);
    let mut bytes = 0;
    for format in TREES..=schema.format() {
        let kept = kept_as(&path, format);
        let found = fs::metadata(&kept).ok();
        if let Some(found) = found.filter(|found| Some(found.ino()) != except) {
            bytes += found.len();
            remove(&kept).map_err(failed)?;
        }
    }
    Ok(bytes)
}

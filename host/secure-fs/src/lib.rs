//! Files and directories that only Wharf's account can read, since they hold addresses, events,
//! bills and keys.

mod check;

pub use check::{Untrusted, check_own, check_secret};

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

const FILE: u32 = 0o600;
const DIRECTORY: u32 = 0o700;

/// Creates a directory and its missing parents. An existing directory keeps its mode.
pub fn make_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(DIRECTORY)
        .create(path)
}

/// Opens a file for reading and writing, and creates it if it is missing.
pub fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).mode(FILE);
    let file = options.open(path)?;
    // Earlier versions may have created the file with another mode.
    file.set_permissions(Permissions::from_mode(FILE))?;
    Ok(file)
}

/// Creates a file for reading and writing. It must not exist.
pub fn open_new(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(FILE);
    options.open(path)
}

/// A name beside a file, for content that is not complete yet.
pub fn draft(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".draft-{}", std::process::id()));
    name.into()
}

/// Gives a complete and synced draft its name, atomically and durably. A file that has the name
/// already stays. The draft's own name is removed either way.
pub fn place(draft: &Path, path: &Path) -> io::Result<()> {
    let linked = fs::hard_link(draft, path);
    let _ = fs::remove_file(draft);
    linked?;
    sync_names(parent(path))
}

fn parent(path: &Path) -> &Path {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// Replaces the content of a file atomically: after a power failure it has either the old or the new
/// content.
pub fn write(path: &Path, content: &[&[u8]]) -> io::Result<()> {
    let draft = path.with_extension(format!("draft-{}", std::process::id()));
    let renamed = write_all(&draft, content).and_then(|()| fs::rename(&draft, path));
    if renamed.is_err() {
        let _ = fs::remove_file(&draft);
    }
    renamed?;
    sync_names(parent(path))
}

fn write_all(path: &Path, content: &[&[u8]]) -> io::Result<()> {
    let mut file = open(path)?;
    file.set_len(0)?;
    content.iter().try_for_each(|part| file.write_all(part))?;
    file.sync_all()
}

/// Syncs a directory, so that its new file names survive a power failure.
pub fn sync_names(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

//! Files and directories that nobody else on the machine may read, whatever the mode of what they are
//! in: addresses, events, bills and keys are there.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

const FILE: u32 = 0o600;
const DIRECTORY: u32 = 0o700;

/// Makes a directory, and those above it, where they are missing. One that is there keeps its mode.
pub fn make_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(DIRECTORY)
        .create(path)
}

/// Opens or makes a file, for reading and writing.
pub fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).mode(FILE);
    let file = options.open(path)?;
    // It may be of a time when it was not made so.
    file.set_permissions(Permissions::from_mode(FILE))?;
    Ok(file)
}

/// Makes a file with this content, over one that is there: through a power cut it is whole or as it
/// was before.
pub fn write(path: &Path, content: &[&[u8]]) -> io::Result<()> {
    let draft = path.with_extension(format!("draft-{}", std::process::id()));
    let renamed = write_all(&draft, content).and_then(|()| fs::rename(&draft, path));
    if renamed.is_err() {
        let _ = fs::remove_file(&draft);
    }
    renamed?;
    sync_names(path.parent().unwrap_or(Path::new(".")))
}

fn write_all(path: &Path, content: &[&[u8]]) -> io::Result<()> {
    let mut file = open(path)?;
    file.set_len(0)?;
    content.iter().try_for_each(|part| file.write_all(part))?;
    file.sync_all()
}

/// Makes the names of a directory's new files hold through a power cut.
pub fn sync_names(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

//! Plugins as one server has compiled them, for the next with a data directory of its own: compiling
//! those that come with Wharf takes a server nearly two seconds of a core, which is most of what a
//! short test costs.
//!
//! Errors are ignored here: a server compiles what it does not find, and takes no file but one made from
//! the same plugin, by the same Wasmtime with the same settings.

use crate::workspace::target;
use std::fs::{self, DirBuilder, DirEntry, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use tempfile::NamedTempFile;

/// Below a data directory; no one else may have access to it.
const CACHE: &str = "plugins-cache";
const COMPILED: &str = ".cwasm";
/// Bytes. A plugin that brings a language along is larger, and used by few: copying it for everyone
/// takes longer than it saves.
const LARGEST: u64 = 8 << 20;

/// Starts a server on this data directory with what others have compiled, and keeps what it compiles, in
/// place of what was made from an earlier build of the same plugin.
pub fn lent<T>(data_dir: &Path, start: impl FnOnce() -> T) -> T {
    let (own, shared) = (data_dir.join(CACHE), target().join(CACHE));
    let _ = copy_all(&shared, &own);
    let started = start();
    let _ = copy_all(&own, &shared);
    started
}

fn copy_all(from: &Path, to: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(to)?;
    for name in names(from)?.iter().filter(|name| !to.join(name).exists()) {
        // Another test may have removed it just now.
        if copy(&from.join(name), &to.join(name)).is_ok() {
            forget_others(name, to)?;
        }
    }
    Ok(())
}

/// Others do the same: a file appears whole or not at all.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut file = File::open(from)?;
    if file.metadata()?.len() > LARGEST {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut part = NamedTempFile::new_in(to.parent().unwrap_or(to))?;
    io::copy(&mut file, &mut part)?;
    part.persist(to)?;
    Ok(())
}

fn forget_others(name: &str, dir: &Path) -> io::Result<()> {
    for other in names(dir)? {
        if other != name && plugin(&other) == plugin(name) {
            let _ = fs::remove_file(dir.join(other));
        }
    }
    Ok(())
}

fn names(dir: &Path) -> io::Result<Vec<String>> {
    let name = |entry: io::Result<DirEntry>| entry.ok()?.file_name().into_string().ok();
    let names = fs::read_dir(dir)?.filter_map(name);
    Ok(names.filter(|name| name.ends_with(COMPILED)).collect())
}

/// `driver-docker` of `driver-docker-4a3c….cwasm`.
fn plugin(name: &str) -> Option<&str> {
    Some(name.rsplit_once('-')?.0)
}

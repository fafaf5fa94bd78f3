//! A cache of compiled plugins that all servers of this workspace share. Compiling the embedded
//! plugins takes nearly two seconds of a core, which is most of the time of a short test.
//!
//! Errors are ignored: a server compiles a plugin that it does not find, and loads only files of the
//! right plugin, Wasmtime and settings.

use crate::workspace::{target, wharf_binary};
use std::fs::{self, DirBuilder, DirEntry, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::Command;
use tempfile::NamedTempFile;

/// The directory, in a data directory and in `target`; only its owner may have access.
const CACHE: &str = "plugins-cache";
const COMPILED: &str = ".cwasm";
/// Bytes. Plugins with an interpreter are larger: copying one to every server takes longer than it saves.
const LARGEST: u64 = 8 << 20;

/// Fills the cache of a data directory, starts its server, and copies newly compiled plugins back. These
/// replace files of earlier builds of their plugins.
///
/// A server refuses a directory that has a cache and no database, so this makes the database first.
pub fn with_shared<T>(config: &Path, data_dir: &Path, start: impl FnOnce() -> T) -> T {
    if !data_dir.join("wharf.redb").exists() {
        let mut wharf = Command::new(wharf_binary());
        let _ = wharf.args(["key", "list", "--config"]).arg(config).output();
    }
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
            remove_earlier(name, to)?;
        }
    }
    Ok(())
}

/// Copies a file atomically, because other tests copy at the same time.
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

fn remove_earlier(name: &str, dir: &Path) -> io::Result<()> {
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

/// Returns `driver-docker` for `driver-docker-4a3c….cwasm`.
fn plugin(name: &str) -> Option<&str> {
    Some(name.rsplit_once('-')?.0)
}

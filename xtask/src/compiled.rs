//! Plugins as one server has compiled them, for the next with a data directory of its own: compiling
//! takes each nearly two seconds of a core, which is most of what a short test costs.
//!
//! Whatever fails here is left: a server compiles what it does not find, and takes no file that was not
//! made by its own build from the same plugin.

use crate::workspace::target;
use std::fs::{self, DirBuilder, DirEntry};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Below a data directory; no one else may have access to it.
const CACHE: &str = "plugins-cache";
const COMPILED: &str = ".cwasm";

/// Gives a server that is to start there what others have compiled.
pub fn lend(data_dir: &Path) {
    let _ = copy_all(&shared(), &data_dir.join(CACHE));
}

/// Keeps what a server has compiled, in place of what was made from an earlier build of the same plugin.
pub fn keep(data_dir: &Path) {
    let _ = copy_all(&data_dir.join(CACHE), &shared());
}

fn shared() -> PathBuf {
    target().join(CACHE)
}

fn copy_all(from: &Path, to: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(to)?;
    for name in names(from)? {
        let path = to.join(&name);
        if path.exists() {
            continue;
        }
        // Others do the same: a file appears whole or not at all.
        let part = to.join(unique());
        fs::copy(from.join(&name), &part)?;
        fs::rename(&part, &path)?;
        let plugin = plugin(&name);
        for other in names(to)? {
            if other != name && self::plugin(&other) == plugin {
                fs::remove_file(to.join(other))?;
            }
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

fn unique() -> String {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!(".{}-{count}", std::process::id())
}

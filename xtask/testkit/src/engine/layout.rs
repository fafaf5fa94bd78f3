//! The paths of a private engine, its lock, and the note with which a later run finds it.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

/// The directory of directories of running engines.
const RUN: &str = "/run";
/// The note's file, in an engine's directory there.
const NOTE: &str = "options.json";
/// The files of a loop device, below the directory of an engine: that of dockerd or Podman, and that of the
/// first member of a cluster, with simple quotas and without.
const DISKS: [&str; 3] = ["disk.img", "m1.img", "m1/disks/default.img"];

/// The paths of an engine: persistent files are in the caller's directory, others below `/run`. The data
/// is mounted below `/run` too, because instances run as users without access to `/root`.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    /// Eight hex digits that name this engine.
    pub id: String,
    /// The caller's directory.
    pub dir: PathBuf,
    /// `/run/wharf-<id>`, or with another prefix.
    pub run: PathBuf,
}

/// A hash of a name, eight hex digits.
pub fn short_hash(name: &[u8]) -> String {
    let hash = Sha256::digest(name);
    let digits = hash.iter().take(4).map(|byte| format!("{byte:02x}"));
    digits.collect()
}

/// The size of the storage of the engine in `dir`, if it exists.
pub fn disk_gib(dir: &Path) -> Option<u64> {
    let mut sizes = DISKS.iter().map(|disk| fs::metadata(dir.join(disk)));
    Some(sizes.find_map(Result::ok)?.len() >> 30)
}

/// Locks a directory, unless another process has. The kernel releases the lock when its process ends.
pub fn try_lock(directory: &Path) -> Result<Option<File>> {
    let path = directory.join("lock");
    let file = File::create(&path).with_context(|| format!("{}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}

impl Layout {
    /// The paths of the engine in `dir`, with this prefix below `/run`.
    pub fn at(dir: &Path, prefix: &str) -> Result<Self> {
        fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
        let dir = dir.canonicalize()?;
        let id = short_hash(dir.as_os_str().as_encoded_bytes());
        let run = Path::new(RUN).join(format!("{prefix}{id}"));
        Ok(Self { id, dir, run })
    }

    /// Locks the engine.
    pub fn lock(&self) -> Result<File> {
        let lock = try_lock(&self.dir)?;
        lock.with_context(|| format!("another process uses the engine in {}", self.dir.display()))
    }

    /// Notes the engine, which is about to start.
    pub fn note(&self, note: &Note) -> Result<()> {
        fs::create_dir_all(&self.run)?;
        let note = json!({
            "kind": note.kind,
            "dir": self.dir,
            "disk_gib": note.disk_gib,
            "disposable": note.disposable,
            "owner": std::process::id(),
        });
        Ok(fs::write(self.run.join(NOTE), note.to_string())?)
    }

    pub fn socket(&self) -> PathBuf {
        self.run.join("engine.sock")
    }

    pub fn pidfile(&self) -> PathBuf {
        self.run.join("engine.pid")
    }

    pub fn exec_root(&self) -> PathBuf {
        self.run.join("exec")
    }

    /// The mount point of the storage.
    pub fn data(&self) -> PathBuf {
        self.run.join("data")
    }

    pub fn log(&self) -> PathBuf {
        self.dir.join("engine.log")
    }

    /// The file of the loop device.
    pub fn disk(&self) -> PathBuf {
        self.dir.join(DISKS[0])
    }

    /// The storage without a loop device.
    pub fn directory(&self) -> PathBuf {
        self.dir.join("data")
    }
}

/// The facts with which a later run, in any directory, ends an engine.
#[derive(Debug, Clone)]
pub(crate) struct Note {
    /// The name of the kind.
    pub kind: String,
    /// The size of the storage.
    pub disk_gib: Option<u64>,
    /// Whether the data go at the end.
    pub disposable: bool,
}

/// An engine of a killed run.
pub(super) struct Abandoned {
    pub layout: Layout,
    pub note: Note,
    /// Keeps others from it. A directory that is gone has no lock.
    pub lock: Option<File>,
}

/// Lists the engines whose runs have ended without removing them, except that of the directory `own`.
pub(super) fn abandoned(own: Option<&Path>) -> Vec<Abandoned> {
    let own = own.and_then(|dir| dir.canonicalize().ok());
    let entries = fs::read_dir(RUN).into_iter().flatten().flatten();
    let found = entries.filter_map(|entry| Abandoned::in_run(entry.path(), own.as_deref()));
    found.collect()
}

impl Abandoned {
    fn in_run(run: PathBuf, own: Option<&Path>) -> Option<Self> {
        let name = run.file_name()?.to_str()?.strip_prefix("wharf-")?;
        let id = name.rsplit('-').next()?.to_owned();
        let note: Value = serde_json::from_str(&fs::read_to_string(run.join(NOTE)).ok()?).ok()?;
        let dir = PathBuf::from(note.get("dir")?.as_str()?);
        if Some(dir.as_path()) == own {
            return None;
        }
        let layout = Layout { id, dir, run };
        // Without its directory an engine has no lock, and its data are lost.
        let is_lost = !layout.dir.is_dir();
        let lock = if is_lost {
            let owner = note.get("owner")?.as_u64()?;
            if Path::new("/proc").join(owner.to_string()).exists() {
                return None;
            }
            None
        } else {
            // A living run holds it.
            Some(layout.lock().ok()?)
        };
        let note = Note {
            kind: note.get("kind")?.as_str()?.to_owned(),
            disk_gib: note.get("disk_gib").and_then(Value::as_u64),
            disposable: is_lost || note.get("disposable")?.as_bool()?,
        };
        Some(Self { layout, note, lock })
    }
}

#[cfg(test)]
mod tests {
    use super::Layout;

    #[test]
    fn a_directory_has_one_engine() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::at(dir.path(), "wharf-").unwrap();
        let held = layout.lock().unwrap();
        let refused = Layout::at(dir.path(), "wharf-").unwrap().lock();
        assert!(refused.unwrap_err().to_string().contains("another process"));
        drop(held);
        assert!(layout.lock().is_ok());
    }
}

//! The paths of a private engine.

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

/// The paths of an engine: persistent files are in the caller's directory, others below `/run`. The data
/// is mounted below `/run` too, because instances run as users without access to `/root`.
#[derive(Debug)]
pub(super) struct Layout {
    /// Eight hex digits that name this engine.
    pub id: String,
    /// The caller's directory.
    pub dir: PathBuf,
    /// `/run/wharf-<id>`.
    pub run: PathBuf,
}

/// A hash of a name, eight hex digits.
pub fn short_hash(name: &[u8]) -> String {
    let hash = Sha256::digest(name);
    let digits = hash.iter().take(4).map(|byte| format!("{byte:02x}"));
    digits.collect()
}

impl Layout {
    pub fn at(dir: &Path) -> Result<Self> {
        fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
        let dir = dir.canonicalize()?;
        let id = short_hash(dir.as_os_str().as_encoded_bytes());
        let run = PathBuf::from(format!("/run/wharf-{id}"));
        Ok(Self { id, dir, run })
    }

    /// Locks the engine. The kernel releases the lock when its process ends.
    pub fn lock(&self) -> Result<File> {
        let path = self.dir.join("lock");
        let file = File::create(&path).with_context(|| format!("{}", path.display()))?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => {
                bail!("another process uses the engine in {}", self.dir.display())
            }
            Err(TryLockError::Error(error)) => Err(error.into()),
        }
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
        self.dir.join(super::storage::DISK)
    }

    /// The storage without a loop device.
    pub fn directory(&self) -> PathBuf {
        self.dir.join("data")
    }
}

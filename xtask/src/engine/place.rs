//! The paths of one private engine.

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};
use std::fs::{self, File, TryLockError};
use std::path::PathBuf;

/// Two roots: what is kept lies in the caller's directory, what dies with the machine below `/run`.
/// The data is mounted below `/run` as well, because instances run as other users, who may not
/// pass through a directory such as `/root`.
#[derive(Debug)]
pub(super) struct Place {
    /// Eight hex digits that name this engine.
    pub id: String,
    /// The caller's directory.
    pub dir: PathBuf,
    /// `/run/wharf-<id>`.
    pub run: PathBuf,
}

/// Eight hex digits that stand for a name.
pub fn short_hash(name: &[u8]) -> String {
    let hash = Sha256::digest(name);
    let digits = hash.iter().take(4).map(|byte| format!("{byte:02x}"));
    digits.collect()
}

impl Place {
    pub fn at(dir: &std::path::Path) -> Result<Self> {
        fs::create_dir_all(dir).with_context(|| format!("{} cannot be made", dir.display()))?;
        let dir = dir.canonicalize()?;
        let id = short_hash(dir.as_os_str().as_encoded_bytes());
        let run = PathBuf::from(format!("/run/wharf-{id}"));
        Ok(Self { id, dir, run })
    }

    /// Held as long as the engine is in use; the kernel lets go of it when its holder dies.
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

    /// Where the storage is mounted.
    pub fn data(&self) -> PathBuf {
        self.run.join("data")
    }

    pub fn log(&self) -> PathBuf {
        self.dir.join("engine.log")
    }

    /// The loop file.
    pub fn disk(&self) -> PathBuf {
        self.dir.join(super::storage::DISK)
    }

    /// The storage where there is no loop file.
    pub fn directory(&self) -> PathBuf {
        self.dir.join("data")
    }
}

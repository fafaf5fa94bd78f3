//! Paths, names and addresses of a cluster.

use crate::engine::short_hash;
use anyhow::{Context, Result, bail};
use std::fs::{self, File, TryLockError};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

/// The name of the note below `/run`, for a later run that finds this one killed.
const NOTE: &str = "incus";
/// The prefix of directories below `/run`.
const PREFIX: &str = "wharf-incus-";

/// The place of a cluster.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// Eight hex digits that name the cluster.
    id: String,
    /// The caller's directory, with the storage and the logs.
    pub dir: PathBuf,
    /// `/run/wharf-incus-<id>`, with the sockets and the namespaces.
    pub run: PathBuf,
}

impl Place {
    pub fn at(dir: &Path) -> Result<Self> {
        fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
        let dir = dir.canonicalize()?;
        let id = short_hash(dir.as_os_str().as_encoded_bytes());
        let run = PathBuf::from(format!("/run/{PREFIX}{id}"));
        Ok(Self { id, dir, run })
    }

    /// Places of all clusters that this machine has, of killed runs too.
    pub fn all() -> Vec<Self> {
        let entries = fs::read_dir("/run").into_iter().flatten().flatten();
        let named = entries.filter(|entry| {
            let name = entry.file_name();
            name.to_string_lossy().starts_with(PREFIX)
        });
        let dirs = named.filter_map(|entry| fs::read_to_string(entry.path().join(NOTE)).ok());
        dirs.filter_map(|dir| Self::at(Path::new(dir.trim())).ok())
            .collect()
    }

    /// Notes the caller's directory.
    pub fn note(&self) -> Result<()> {
        fs::create_dir_all(&self.run)?;
        let dir = self.dir.to_string_lossy();
        Ok(fs::write(self.run.join(NOTE), dir.as_bytes())?)
    }

    /// Locks the cluster. The kernel releases the lock when its process ends.
    pub fn lock(&self) -> Result<File> {
        let path = self.dir.join("lock");
        let file = File::create(&path).with_context(|| format!("{}", path.display()))?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => {
                bail!("another process uses the cluster in {}", self.dir.display())
            }
            Err(TryLockError::Error(error)) => Err(error.into()),
        }
    }

    /// The bridge between the members. Interfaces have at most 15 characters.
    pub fn bridge(&self) -> String {
        format!("wic{}", self.id)
    }

    /// The machine's end of a member's link.
    pub fn link(&self, member: u8) -> String {
        format!("wic{}{member}", self.id)
    }

    pub fn namespace(&self, member: u8) -> String {
        format!("wharf-incus-{}-{member}", self.id)
    }

    /// The member's directory. It is short, because it has sockets, and below `/run`, because instances
    /// run as users without access to `/root`.
    pub fn directory(&self, member: u8) -> PathBuf {
        self.run.join(format!("m{member}"))
    }

    /// The content of that directory.
    pub fn content(&self, member: u8) -> PathBuf {
        self.dir.join(format!("m{member}"))
    }

    /// The file that keeps a member's mount namespace.
    pub fn mounts(&self, member: u8) -> PathBuf {
        self.run.join("mounts").join(member.to_string())
    }

    pub fn log(&self, member: u8) -> PathBuf {
        self.dir.join(format!("m{member}.log"))
    }

    /// A network of addresses for benchmarks, which no other network should use. The host's own address
    /// is `host(254)`.
    pub fn host(&self, n: u8) -> Ipv4Addr {
        let byte = u8::from_str_radix(self.id.get(..2).unwrap_or("0"), 16).unwrap_or(0);
        Ipv4Addr::new(198, 19, byte, n)
    }
}

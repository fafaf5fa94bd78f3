//! Paths, names and addresses of a cluster.

use crate::engine::short_hash;
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use std::fs::{self, File, TryLockError};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

/// The name of the note below `/run`, for a later run that finds this one killed.
const NOTE: &str = "incus.json";
/// The file of a lasting cluster that is complete, with its id.
const COMPLETE: &str = "complete";
/// The prefix of directories below `/run`.
const PREFIX: &str = "wharf-incus-";

/// The place of a cluster.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// Eight hex digits that name the cluster.
    pub id: String,
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

    /// Notes the cluster, which is about to start.
    pub fn note(&self, disposable: bool) -> Result<()> {
        fs::create_dir_all(&self.run)?;
        let note = json!({
            "dir": self.dir,
            "disposable": disposable,
            "owner": std::process::id(),
        });
        Ok(fs::write(self.run.join(NOTE), note.to_string())?)
    }

    /// Whether the storage has a complete cluster of an earlier run.
    pub fn is_complete(&self) -> Result<bool> {
        let Ok(id) = fs::read_to_string(self.dir.join(COMPLETE)) else {
            return Ok(false);
        };
        ensure!(
            id == self.id,
            "the Incus in {} was made at another path, on which its addresses depend: move it back, or \
             remove it",
            self.dir.display()
        );
        Ok(true)
    }

    /// Records that the cluster is complete.
    pub fn complete(&self) -> Result<()> {
        Ok(fs::write(self.dir.join(COMPLETE), &self.id)?)
    }

    /// Removes the storage and the logs of all members.
    pub fn remove_content(&self) -> Result<()> {
        let _ = fs::remove_file(self.dir.join(COMPLETE));
        for number in 1..=9 {
            let content = self.content(number);
            if content.is_dir() {
                fs::remove_dir_all(&content).with_context(|| format!("{}", content.display()))?;
            }
            let _ = fs::remove_file(self.log(number));
        }
        Ok(())
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

    /// The bridge between the members, to which the node's rules apply. Interfaces have at most 15 characters.
    pub fn bridge(&self) -> String {
        format!("whfi{}", self.id)
    }

    /// The machine's end of a member's link.
    pub fn link(&self, member: u8) -> String {
        format!("{}{member}", self.bridge())
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

/// A cluster of a killed run.
pub(super) struct Abandoned {
    pub place: Place,
    /// Whether its storage is to be removed.
    pub disposable: bool,
    /// Keeps others from the cluster. A directory that is gone has no lock.
    _lock: Option<File>,
}

/// Finds the clusters of killed runs on this machine.
pub(super) fn abandoned() -> Vec<Abandoned> {
    let entries = fs::read_dir("/run").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| abandoned_in(entry.path()))
        .collect()
}

fn abandoned_in(run: PathBuf) -> Option<Abandoned> {
    let id = run.file_name()?.to_str()?.strip_prefix(PREFIX)?.to_owned();
    let note: Value = serde_json::from_str(&fs::read_to_string(run.join(NOTE)).ok()?).ok()?;
    let dir = PathBuf::from(note.get("dir")?.as_str()?);
    let place = Place { id, dir, run };
    if place.dir.is_dir() {
        return Some(Abandoned {
            disposable: note.get("disposable")?.as_bool()?,
            // A living run holds it.
            _lock: Some(place.lock().ok()?),
            place,
        });
    }
    let owner = note.get("owner")?.as_u64()?;
    let lives = Path::new("/proc").join(owner.to_string()).exists();
    (!lives).then_some(Abandoned {
        place,
        disposable: true,
        _lock: None,
    })
}

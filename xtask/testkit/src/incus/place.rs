//! Paths, names and addresses of a cluster.

use crate::engine::Layout;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// The file of a lasting cluster that is complete, with its id.
const COMPLETE: &str = "complete";
/// The numbers that members may have.
pub(super) const NUMBERS: std::ops::RangeInclusive<u8> = 1..=9;

impl Layout {
    /// Whether the storage has a complete cluster of an earlier run.
    pub(super) fn is_complete(&self) -> Result<bool> {
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
    pub(super) fn complete(&self) -> Result<()> {
        Ok(fs::write(self.dir.join(COMPLETE), &self.id)?)
    }

    /// Removes the storage and the logs of all members.
    pub(super) fn remove_content(&self) -> Result<()> {
        let _ = fs::remove_file(self.dir.join(COMPLETE));
        for number in NUMBERS {
            let content = self.content(number);
            if content.is_dir() {
                fs::remove_dir_all(&content).with_context(|| format!("{}", content.display()))?;
            }
            let _ = fs::remove_file(self.pool_disk(number));
            let _ = fs::remove_file(self.member_log(number));
        }
        Ok(())
    }

    /// The bridge between the members, to which the node's rules apply. Interfaces have at most 15 characters.
    pub(super) fn bridge(&self) -> String {
        format!("whfi{}", self.id)
    }

    /// The machine's end of a member's link.
    pub(super) fn link(&self, member: u8) -> String {
        format!("{}{member}", self.bridge())
    }

    pub(super) fn namespace(&self, member: u8) -> String {
        format!("wharf-incus-{}-{member}", self.id)
    }

    /// The member's directory. It is short, because it has sockets.
    pub(super) fn member(&self, member: u8) -> PathBuf {
        self.run.join(format!("m{member}"))
    }

    /// The content of that directory.
    pub(super) fn content(&self, member: u8) -> PathBuf {
        self.dir.join(format!("m{member}"))
    }

    /// The file that keeps a member's mount namespace.
    pub(super) fn mounts(&self, member: u8) -> PathBuf {
        self.run.join("mounts").join(member.to_string())
    }

    /// The file of the member's pool, if the kernel has simple quotas.
    pub(super) fn pool_disk(&self, member: u8) -> PathBuf {
        self.dir.join(format!("m{member}.img"))
    }

    /// Its mount point, in the member's namespace.
    pub(super) fn pool(&self, member: u8) -> PathBuf {
        self.run.join(format!("pool{member}"))
    }

    pub(super) fn member_log(&self, member: u8) -> PathBuf {
        self.dir.join(format!("m{member}.log"))
    }

    /// A network of addresses for benchmarks, which no other network should use. The host's own address
    /// is `host(254)`.
    pub(super) fn host(&self, n: u8) -> Ipv4Addr {
        let byte = u8::from_str_radix(self.id.get(..2).unwrap_or("0"), 16).unwrap_or(0);
        Ipv4Addr::new(198, 19, byte, n)
    }
}

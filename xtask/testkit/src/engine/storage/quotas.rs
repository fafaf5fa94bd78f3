//! The quota groups of btrfs. Simple ones make the removal of a container cheap: full ones look for all
//! users of each block that it shares with its image.

use crate::process::{command, output};
use anyhow::{Context, Result, bail};
use rustix::io::Errno;
use rustix::ioctl::{Opcode, Updater, ioctl, opcode};
use std::fs::{self, File};
use std::path::Path;

/// The kind of quota groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Quotas {
    /// A limit counts the blocks that a container shares with its image.
    Full,
    /// A limit counts the blocks that the container has written.
    Simple,
}

impl Quotas {
    /// The quota groups of the file system that is mounted at `root`. Enables simple ones where there are
    /// none. On an older kernel, which has full ones only, the engine enables them.
    pub(in super::super) fn of(root: &Path) -> Result<Self> {
        let mode = Path::new("/sys/fs/btrfs")
            .join(id(root)?)
            .join("qgroups/mode");
        match fs::read_to_string(mode).as_deref().map(str::trim_end) {
            Ok("squota") => Ok(Self::Simple),
            Ok(_) => Ok(Self::Full),
            Err(_) => enable_simple(root),
        }
    }
}

/// `struct btrfs_ioctl_quota_ctl_args`
#[repr(C)]
struct QuotaCtl {
    cmd: u64,
    status: u64,
}

/// `BTRFS_IOC_QUOTA_CTL`
const QUOTA_CTL: Opcode = opcode::read_write::<QuotaCtl>(0x94, 40);
/// `BTRFS_QUOTA_CTL_ENABLE_SIMPLE_QUOTA`
const ENABLE_SIMPLE: u64 = 4;

/// The program of Debian 12 cannot do this, even on a newer kernel.
#[allow(unsafe_code)]
fn enable_simple(root: &Path) -> Result<Quotas> {
    let directory = File::open(root)?;
    let mut arguments = QuotaCtl {
        cmd: ENABLE_SIMPLE,
        status: 0,
    };
    // SAFETY: `QUOTA_CTL` reads and writes a value of this type.
    let enabled = unsafe {
        ioctl(
            directory,
            Updater::<QUOTA_CTL, QuotaCtl>::new(&mut arguments),
        )
    };
    match enabled {
        Ok(()) => Ok(Quotas::Simple),
        Err(Errno::INVAL) => Ok(Quotas::Full),
        Err(error) => Err(error).with_context(|| format!("quotas of {}", root.display())),
    }
}

/// The UUID of the file system.
fn id(root: &Path) -> Result<String> {
    let shown = output(command("btrfs").args(["filesystem", "show"]).arg(root))?;
    match shown
        .split_once("uuid: ")
        .and_then(|(_, rest)| rest.split_whitespace().next())
    {
        Some(id) => Ok(id.to_owned()),
        None => bail!("no uuid in {shown:?}"),
    }
}

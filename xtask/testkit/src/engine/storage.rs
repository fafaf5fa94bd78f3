//! The storage of images and instances: btrfs in a sparse file, because it enforces disk sizes; where the
//! kernel lacks btrfs, a plain directory.

mod quotas;

use super::layout::Layout;
use super::mounts;
use crate::process::{command, output, run, succeeds};
use crate::progress;
use anyhow::Result;
use std::fs::{self, File};
use std::path::Path;

pub(super) use quotas::Quotas;

/// The kind of storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Storage {
    /// Enforces disk sizes.
    Btrfs(Quotas),
    /// Does not enforce disk sizes.
    Directory,
}

/// Makes and mounts the storage, unless an earlier run left it mounted.
pub(super) fn mount(layout: &Layout, gib: Option<u64>) -> Result<Storage> {
    let data = layout.data();
    fs::create_dir_all(&data)?;
    if is_btrfs(&data) {
        return Ok(Storage::Btrfs(Quotas::of(&data)?));
    }
    if mounts::is_at(&data)? {
        return Ok(Storage::Directory);
    }
    if let Some(gib) = gib {
        match mount_btrfs(layout, gib) {
            Ok(quotas) => return Ok(Storage::Btrfs(quotas)),
            Err(why) => progress::note(&format!(
                "No btrfs here ({why:#}): disk sizes will not be enforced."
            )),
        }
    }
    fs::create_dir_all(layout.directory())?;
    mounts::bind(&layout.directory(), &data)?;
    Ok(Storage::Directory)
}

/// Whether the kernel knows btrfs.
pub fn kernel_has_btrfs() -> bool {
    let known = || {
        fs::read_to_string("/proc/filesystems")
            .is_ok_and(|list| list.split_whitespace().any(|word| word == "btrfs"))
    };
    known() || (succeeds(command("modprobe").arg("btrfs")) && known())
}

fn mount_btrfs(layout: &Layout, gib: u64) -> Result<Quotas> {
    if !kernel_has_btrfs() {
        anyhow::bail!("the kernel does not know it");
    }
    let disk = layout.disk();
    if !disk.exists() {
        // Renamed when complete, so that an incomplete file system is never used.
        let draft = disk.with_extension("draft");
        File::create(&draft)?.set_len(gib << 30)?;
        output(
            command("mkfs.btrfs")
                .args(["--quiet", "--force"])
                .arg(&draft),
        )?;
        fs::rename(&draft, &disk)?;
    }
    // `discard` returns the space of deleted instances to the machine; synchronously, every commit would
    // wait for it.
    let mut mount = command("mount");
    mount
        .args(["-t", "btrfs", "-o", "loop,noatime,discard=async"])
        .arg(&disk)
        .arg(layout.data());
    output(&mut mount)?;
    Quotas::of(&layout.data())
}

/// Waits until btrfs has cleaned up deleted data, which it does in the background.
pub(super) fn settle(layout: &Layout) -> Result<()> {
    let data = layout.data();
    run(command("btrfs").args(["filesystem", "sync"]).arg(&data))?;
    output(command("btrfs").args(["subvolume", "sync"]).arg(&data)).map(drop)
}

fn is_btrfs(path: &Path) -> bool {
    let mut stat = command("stat");
    stat.args(["--file-system", "--format=%T"]).arg(path);
    output(&mut stat).is_ok_and(|kind| kind.trim() == "btrfs")
}

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
use std::process::Command;

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
        make(&disk, gib)?;
    }
    output(mounting(&mut command("mount"), &disk, &layout.data()))?;
    Quotas::of(&layout.data())
}

/// Makes a sparse file with btrfs.
fn make(disk: &Path, gib: u64) -> Result<()> {
    // Renamed when complete, so that an incomplete file system is never used.
    let draft = disk.with_extension("draft");
    File::create(&draft)?.set_len(gib << 30)?;
    output(
        command("mkfs.btrfs")
            .args(["--quiet", "--force"])
            .arg(&draft),
    )?;
    Ok(fs::rename(&draft, disk)?)
}

/// The arguments of `mount` for such a file.
pub(crate) fn mounting<'a>(mount: &'a mut Command, disk: &Path, at: &Path) -> &'a mut Command {
    // `discard` returns the space of deleted instances to the machine; synchronously, every commit would
    // wait for it.
    let options = ["-t", "btrfs", "-o", "loop,noatime,discard=async"];
    mount.args(options).arg(disk).arg(at)
}

/// Makes such a file with simple quotas. False if the kernel has none: there is no file then. `at` is a mount point.
pub(crate) fn make_simple(disk: &Path, gib: u64, at: &Path) -> Result<bool> {
    if !kernel_has_btrfs() {
        return Ok(false);
    }
    make(disk, gib)?;
    output(mounting(&mut command("mount"), disk, at))?;
    let quotas = Quotas::of(at);
    output(command("umount").arg(at))?;
    let is_simple = quotas? == Quotas::Simple;
    if !is_simple {
        fs::remove_file(disk)?;
    }
    Ok(is_simple)
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

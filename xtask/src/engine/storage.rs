//! Where the engine keeps images and instances: btrfs in a sparse file, because that is the one
//! storage that enforces disk sizes wherever the kernel has it; else a plain directory.

use super::place::Place;
use crate::process::{command, output, run, succeeds};
use crate::say;
use anyhow::{Context, Result};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// What the engine's data lies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Storage {
    /// Disk sizes are enforced.
    Btrfs,
    /// They are not.
    Directory,
}

/// The name of the loop file in the engine's directory.
pub(super) const DISK: &str = "disk.img";

/// How large the storage of the engine in `dir` is, if it has been made.
pub fn disk_gib(dir: &Path) -> Option<u64> {
    Some(fs::metadata(dir.join(DISK)).ok()?.len() >> 30)
}

/// Makes and mounts the storage, unless an earlier run left it mounted.
pub(super) fn mount(place: &Place, gib: Option<u64>) -> Result<Storage> {
    let data = place.data();
    fs::create_dir_all(&data)?;
    if is_btrfs(&data) {
        return Ok(Storage::Btrfs);
    }
    if mounts_below(&data)?.contains(&data) {
        return Ok(Storage::Directory);
    }
    if let Some(gib) = gib {
        match mount_btrfs(place, gib) {
            Ok(()) => return Ok(Storage::Btrfs),
            Err(why) => say::note(&format!(
                "No btrfs here ({why:#}): disk sizes will not be enforced."
            )),
        }
    }
    fs::create_dir_all(place.directory())?;
    run(command("mount")
        .arg("--bind")
        .arg(place.directory())
        .arg(&data))?;
    Ok(Storage::Directory)
}

fn mount_btrfs(place: &Place, gib: u64) -> Result<()> {
    let known = || {
        fs::read_to_string("/proc/filesystems")
            .is_ok_and(|list| list.split_whitespace().any(|word| word == "btrfs"))
    };
    let knows = known() || (succeeds(command("modprobe").arg("btrfs")) && known());
    if !knows {
        anyhow::bail!("the kernel does not know it");
    }
    let disk = place.disk();
    if !disk.exists() {
        // Made under another name: a half-made file system is never mistaken for a whole one.
        let draft = disk.with_extension("draft");
        File::create(&draft)?.set_len(gib << 30)?;
        output(
            command("mkfs.btrfs")
                .args(["--quiet", "--force"])
                .arg(&draft),
        )?;
        fs::rename(&draft, &disk)?;
    }
    // `discard` gives the space of deleted instances back to the machine; done at once rather than
    // by and by, every commit would wait for it.
    let mut mount = command("mount");
    mount
        .args(["-t", "btrfs", "-o", "loop,noatime,discard=async"])
        .arg(&disk)
        .arg(place.data());
    output(&mut mount).map(drop)
}

/// Waits until what was deleted is: btrfs takes it away by and by, at the cost of what comes next.
pub(super) fn settle(place: &Place) -> Result<()> {
    let data = place.data();
    run(command("btrfs").args(["filesystem", "sync"]).arg(&data))?;
    output(command("btrfs").args(["subvolume", "sync"]).arg(&data)).map(drop)
}

fn is_btrfs(path: &Path) -> bool {
    let mut stat = command("stat");
    stat.args(["--file-system", "--format=%T"]).arg(path);
    output(&mut stat).is_ok_and(|kind| kind.trim() == "btrfs")
}

/// Mount points at or below `root`, innermost last.
pub(super) fn mounts_below(root: &Path) -> Result<Vec<PathBuf>> {
    let table = fs::read_to_string("/proc/self/mountinfo").context("/proc/self/mountinfo")?;
    let points = table
        .lines()
        .filter_map(|line| line.split(' ').nth(4))
        .map(PathBuf::from);
    Ok(points.filter(|point| point.starts_with(root)).collect())
}

/// Unmounts everything at or below `root`; the loop device goes with the last mount.
pub(super) fn unmount_all(root: &Path) -> Result<()> {
    for point in mounts_below(root)?.iter().rev() {
        if !succeeds(command("umount").arg(point)) {
            run(command("umount").arg("--lazy").arg(point))?;
        }
    }
    Ok(())
}

//! A mount namespace that outlives the processes in it. What Podman mounts, and the files it leaves
//! at places that every Podman shares, are gone with it; and it can have another root.

use super::super::place::Place;
use crate::process::{command, run};
use anyhow::Result;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// $1: the engine's directory below /run, with its own files on devices. Each of the others is a
/// directory shared by all Podmans.
const HERE: &str = r#"
mkdir -p "$1/cdi" /run/cdi
mount --bind "$1/cdi" /run/cdi
shift
for directory; do mkdir -p "$directory"; mount -t tmpfs tmpfs "$directory"; done
"#;

/// $1: the engine's directory below /run; $2: the root. It must be the namespace's own: in a chroot
/// the kernel makes no user namespaces.
const ELSEWHERE: &str = r#"
mount --bind "$2" "$2"
mount -t proc proc "$2/proc"
mount --rbind /sys "$2/sys"
mount --rbind /dev "$2/dev"
mount -t tmpfs tmpfs "$2/dev/shm"
mount -t tmpfs tmpfs "$2/run"
mkdir -p "$1/cdi" "$2$1" "$2/run/cdi" "$2/mnt/outside"
mount --rbind "$1" "$2$1"
mount --bind "$1/cdi" "$2/run/cdi"
for file in resolv.conf hosts subuid subgid; do
    touch "$2/etc/$file"
    mount --bind "/etc/$file" "$2/etc/$file"
done
cd "$2"
pivot_root . mnt/outside
exec chroot . umount --lazy /mnt/outside
"#;

/// State, network namespaces, caches; and in shared memory the locks, all of which a Podman frees
/// that finds no state of its own.
const SHARED: [&str; 4] = [
    "/run/containers",
    "/run/netns",
    "/var/lib/containers",
    "/dev/shm",
];

/// Makes the namespace, unless an earlier start has.
pub(super) fn make(place: &Place, root: Option<&Path>) -> Result<()> {
    let anchor = anchor(place);
    let directory = place.run.join("namespace");
    if super::super::storage::mounts_below(&directory)?.contains(&anchor) {
        return Ok(());
    }
    fs::create_dir_all(&directory)?;
    // A namespace can only be kept below a mount that is shared with no other namespace.
    run(command("mount")
        .arg("--bind")
        .arg(&directory)
        .arg(&directory))?;
    run(command("mount").arg("--make-private").arg(&directory))?;
    File::create(&anchor)?;
    let mut unshare = command("unshare");
    unshare.arg(format!("--mount={}", anchor.display())).args([
        "--propagation",
        "private",
        "sh",
        "-euc",
    ]);
    match root {
        Some(root) => unshare.args([ELSEWHERE, "sh"]).arg(&place.run).arg(root),
        None => unshare.args([HERE, "sh"]).arg(&place.run).args(SHARED),
    };
    run(&mut unshare)
}

/// A command that runs in it.
pub(super) fn command_in(place: &Place, program: &str) -> Command {
    let mut nsenter = command("nsenter");
    nsenter
        .arg(format!("--mount={}", anchor(place).display()))
        .arg(program);
    nsenter
}

fn anchor(place: &Place) -> PathBuf {
    place.run.join("namespace/mnt")
}

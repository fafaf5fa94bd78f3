//! A mount namespace that outlives its processes. Podman's mounts, and its files in directories that all
//! Podmans share, disappear with it. It may have its own root.

use super::super::layout::Layout;
use super::super::mounts::Namespace;
use anyhow::Result;
use std::path::Path;
use std::process::Command;

/// Uses the machine's root. $1: the engine's directory below /run. The other arguments are directories
/// that all Podmans share.
const HERE: &str = r#"
mkdir -p "$1/cdi" /run/cdi
mount --bind "$1/cdi" /run/cdi
shift
for directory; do mkdir -p "$directory"; mount -t tmpfs tmpfs "$directory"; done
"#;

/// Uses another root. $1: the engine's directory below /run; $2: the root. It becomes the root of the
/// namespace, because the kernel makes no user namespaces in a chroot.
const ELSEWHERE: &str = r#"
mount --bind "$2" "$2"
mount -t proc proc "$2/proc"
mount --rbind /sys "$2/sys"
mount --rbind /dev "$2/dev"
mount -t tmpfs tmpfs "$2/dev/shm"
mount -t tmpfs tmpfs "$2/run"
mkdir -p "$1/cdi" "$2$1" "$2/run/cdi" "$2/mnt/outside" "$2/var/lib/lxcfs"
mount --rbind "$1" "$2$1"
[ ! -d /var/lib/lxcfs ] || mount --rbind /var/lib/lxcfs "$2/var/lib/lxcfs"
mount --bind "$1/cdi" "$2/run/cdi"
for file in resolv.conf hosts subuid subgid; do
    touch "$2/etc/$file"
    mount --bind "/etc/$file" "$2/etc/$file"
done
cd "$2"
pivot_root . mnt/outside
exec chroot . umount --lazy /mnt/outside
"#;

/// State, network namespaces, caches, and in shared memory the locks. A Podman without state frees all
/// locks.
const SHARED: [&str; 4] = [
    "/run/containers",
    "/run/netns",
    "/var/lib/containers",
    "/dev/shm",
];

/// Makes the namespace, unless an earlier start has.
pub(super) fn make(layout: &Layout, root: Option<&Path>) -> Result<()> {
    let run = layout.run.as_path();
    match root {
        Some(root) => of(layout).make(None, ELSEWHERE, &[run, root]),
        None => {
            let arguments: Vec<_> = [run].into_iter().chain(SHARED.map(Path::new)).collect();
            of(layout).make(None, HERE, &arguments)
        }
    }
}

/// A command that runs in the namespace.
pub(super) fn command_in(layout: &Layout, program: &str) -> Command {
    of(layout).command(None, program)
}

fn of(layout: &Layout) -> Namespace {
    Namespace {
        anchor: layout.run.join("namespace/mnt"),
    }
}

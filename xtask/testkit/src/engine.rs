//! A private engine beside the machine's own: its own data, socket, state, user namespaces, and the
//! node's rules. It does not touch the machine's Docker and Podman or read their configuration. dockerd's
//! `iptables` is off, because a second dockerd that manages iptables deletes the chains of the first.
//!
//! - [`Private`] (`private`): the life of an engine of any kind. `layout`, `storage`, `mounts`, `userns`: its
//!   paths, its disk, its namespaces and user ids. `daemon`, `processes`: its processes.
//! - [`PrivateEngine`] (`docker`): dockerd and Podman. `dockerd` and `podman`: how each is configured.
//!   [`crate::incus`] has the third kind.
//! - `lxcfs`: the view that instances have of their size.
//! - [`NodeRules`] (`rules`, `sysctl`): isolation of instances from the node and from each other.
//! - [`Objects`] (`objects`): containers and networks.

mod daemon;
mod docker;
mod dockerd;
mod input;
mod kind;
mod layout;
mod lxcfs;
mod mounts;
mod objects;
mod podman;
mod private;
mod processes;
mod rules;
mod seccomp;
mod storage;
mod sysctl;
pub mod userns;

pub use docker::{DockerOptions, PrivateEngine, TlsListener};
pub use kind::Kind;
pub use layout::{disk_gib, short_hash, try_lock};
pub use objects::{GRACE_S, Objects};
pub use podman::PODMAN;
pub use private::{Private, Running, end_abandoned};
pub use processes::end_all;
pub use rules::{Allowed, NodeRules, Ruleset};
pub use storage::kernel_has_btrfs;

pub(crate) use daemon::Daemon;
pub(crate) use input::run_with_input;
pub(crate) use layout::{Layout, Note};
pub(crate) use mounts::{Namespace, bind, unmount_all};
pub(crate) use private::{Engine, needs_root};
pub(crate) use processes::{all as processes, command_line, end, is_alive, kill, parent};
pub(crate) use storage::{make_simple, mounting};

use crate::packages::{self, Need};
use crate::process::find;
use anyhow::Result;

/// The programs that any private engine needs.
pub(crate) const NEEDS: [Need; 4] = [
    lxcfs::NEED,
    Need {
        program: "nft",
        package: "nftables",
        why: "keeps instances off the node and each other",
    },
    Need {
        program: "ip",
        package: "iproute2",
        why: "reads the node's routes",
    },
    Need {
        program: "mkfs.btrfs",
        package: "btrfs-progs",
        why: "storage that enforces disk sizes",
    },
];

/// The kinds of engine that are installed on this machine.
pub fn installed() -> Vec<Kind> {
    let platform = wharf_images::platform().unwrap_or_default();
    let is_installed = |kind: &Kind| match kind.suite() {
        None => find("dockerd").is_some(),
        Some(suite) => platform.starts_with(&format!("{suite}-")) && find("podman").is_some(),
    };
    Kind::ALL.into_iter().filter(is_installed).collect()
}

/// Installs the programs that a [`PrivateEngine`] of this kind needs.
pub fn install(kind: Kind) -> Result<()> {
    let own = match kind {
        Kind::Dockerd => dockerd::NEEDS,
        Kind::Podman4 | Kind::Podman5 => podman::NEEDS,
    };
    packages::ensure(&[own.as_slice(), &NEEDS].concat())?;
    match kind {
        Kind::Dockerd if kernel_has_btrfs() => seccomp::install(),
        Kind::Dockerd => Ok(()),
        Kind::Podman4 | Kind::Podman5 => podman::install(kind),
    }
}

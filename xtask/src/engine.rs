//! An engine of our own beside whatever else runs on the machine: own data, own socket, own state,
//! user namespaces, and the node's rules. Nothing of a user's Docker or Podman is touched: their
//! configuration is not read, and dockerd's `iptables` is off, because a second dockerd that manages
//! iptables deletes the chains of the first when it starts.

mod contents;
mod daemon;
mod dockerd;
mod kind;
mod leftovers;
mod place;
mod podman;
mod private;
mod rules;
mod storage;
mod switch;
mod userns;

pub use contents::{Contents, GRACE_S};
pub use kind::Kind;
pub use place::short_hash;
pub use podman::PODMAN;
pub use private::{Options, PrivateEngine};
pub use rules::NodeRules;
pub use storage::disk_gib;

use crate::packages::{self, Need};
use anyhow::Result;

/// What any private engine needs from the distribution.
const NEEDS: [Need; 3] = [
    Need {
        program: "nft",
        package: "nftables",
        why: "keeps instances off the node and each other",
    },
    Need {
        program: "ip",
        package: "iproute2",
        why: "looks at the node's routes",
    },
    Need {
        program: "mkfs.btrfs",
        package: "btrfs-progs",
        why: "storage that enforces disk sizes",
    },
];

/// Installs what a [`PrivateEngine`] of this kind needs.
pub fn install(kind: Kind) -> Result<()> {
    let own = match kind {
        Kind::Dockerd => dockerd::NEEDS,
        Kind::Podman4 | Kind::Podman5 => podman::NEEDS,
    };
    packages::ensure(&[own.as_slice(), &NEEDS].concat())?;
    match kind {
        Kind::Dockerd => Ok(()),
        Kind::Podman4 | Kind::Podman5 => podman::install(kind),
    }
}

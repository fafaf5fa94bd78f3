//! A dockerd of our own beside whatever else runs on the machine: own data, own socket, own
//! containerd, user namespaces, and the node's rules. Nothing of a user's Docker is touched: its
//! configuration is not read, and `iptables` is off, because a second dockerd that manages
//! iptables deletes the chains of the first when it starts.

mod contents;
mod daemon;
mod forwarding;
mod leftovers;
mod place;
mod private;
mod rules;
mod storage;
mod userns;

pub use private::{Options, PrivateDockerd};
pub use rules::NodeRules;
pub use storage::disk_gib;

use crate::packages::{self, Need};
use anyhow::Result;

/// What a private engine needs from the distribution.
const NEEDS: [Need; 5] = [
    Need {
        program: "dockerd",
        package: "docker.io",
        why: "the engine that runs instances",
    },
    Need {
        program: "iptables",
        package: "iptables",
        why: "dockerd sets up name resolution with it",
    },
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

/// Installs what [`PrivateDockerd`] needs.
pub fn install() -> Result<()> {
    packages::ensure(&NEEDS)
}

//! What Podman's network stack leaves in the packet filter: chains, and where containers were ended
//! the hard way their rules too, which would send published ports to nobody.

mod iptables;
mod networks;
mod nftables;

pub(in super::super) use networks::Networks;

use anyhow::Result;

/// Removes the rules of these networks, which have no container any more, and the chains that are
/// then empty; netavark makes them again when it needs them. What is another Podman's stays.
pub(in super::super) fn forget(networks: &Networks) -> Result<()> {
    // Up to 1.10 it speaks iptables, later nftables.
    iptables::forget(networks)?;
    nftables::forget(networks)
}

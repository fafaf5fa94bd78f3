//! Removal of the chains and rules that netavark, Podman's network stack, leaves in the packet filter.
//! Rules of killed containers would redirect published ports to nothing.

mod iptables;
mod networks;
mod nftables;

pub(in super::super) use networks::Networks;

use anyhow::Result;

/// Removes the rules of these networks, which have no containers, and the chains that become empty.
/// netavark makes them again when needed. Those of other Podmans stay.
pub(in super::super) fn forget(networks: &Networks) -> Result<()> {
    // netavark uses iptables up to 1.10, and nftables later.
    iptables::forget(networks)?;
    nftables::forget(networks)
}

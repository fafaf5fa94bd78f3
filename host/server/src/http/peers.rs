//! Connections counted by the address of their peer.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wharf_config::Limits;

/// The open connections of each peer.
#[derive(Debug)]
pub(super) struct Peers {
    open: Mutex<HashMap<IpAddr, usize>>,
    limit: usize,
    local_limit: usize,
}

/// A counted connection.
#[derive(Debug)]
pub(super) struct PeerConnection {
    peers: Arc<Peers>,
    peer: IpAddr,
}

impl Peers {
    pub(super) fn new(limits: &Limits) -> Arc<Self> {
        Arc::new(Self {
            open: Mutex::default(),
            limit: limits.connections_per_peer,
            local_limit: limits.connections_per_local_peer,
        })
    }

    /// Counts a connection until it is dropped; none if its peer has too many.
    pub(super) fn connect(self: &Arc<Self>, address: IpAddr) -> Option<PeerConnection> {
        let peer = network(address);
        let limit = match peer.is_loopback() {
            true => self.local_limit,
            false => self.limit,
        };
        let mut open = self.open();
        let count = open.entry(peer).or_default();
        if *count >= limit {
            return None;
        }
        *count += 1;
        Some(PeerConnection {
            peers: Arc::clone(self),
            peer,
        })
    }

    fn open(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PeerConnection {
    fn drop(&mut self) {
        let mut open = self.peers.open();
        if let Some(count) = open.get_mut(&self.peer) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.peer);
            }
        }
    }
}

/// One client usually has a whole IPv6 /64 network, so that is counted as one peer.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::{Peers, network};
    use wharf_config::Limits;

    #[test]
    fn each_peer_has_its_own_limit() {
        let peers = Peers::new(&Limits {
            connections_per_peer: 2,
            connections_per_local_peer: 3,
            ..Limits::default()
        });
        let connect = |address: &str| peers.connect(address.parse().unwrap());
        let held = [connect("192.0.2.1"), connect("::ffff:192.0.2.1")];
        assert!(held.iter().all(Option::is_some) && connect("192.0.2.1").is_none());
        let other = connect("192.0.2.2");
        assert!(other.is_some());
        let local = [(); 3].map(|()| connect("127.0.0.1"));
        assert!(local.iter().all(Option::is_some) && connect("127.0.0.1").is_none());
        drop(held);
        assert!(connect("192.0.2.1").is_some());
        drop((other, local));
        assert!(peers.open().is_empty());
    }

    #[test]
    fn ipv6_peers_are_networks() {
        let network = |address: &str| network(address.parse().unwrap()).to_string();
        assert_eq!(network("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(network("::1"), "::1");
        assert_eq!(network("::ffff:10.0.0.1"), "10.0.0.1");
    }
}

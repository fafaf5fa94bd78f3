//! Connections counted by the address of their peer.

use super::activity::Activity;
use super::client::network;
use parking_lot::Mutex;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use wharf_config::{LimitsConfig, TrustedProxies};

/// The open connections of each peer.
#[derive(Debug)]
pub(super) struct Peers {
    open: Mutex<OpenPeers>,
    limit: usize,
    local_limit: usize,
    proxies: Arc<TrustedProxies>,
}

#[derive(Debug, Default)]
struct OpenPeers {
    /// The connections of each peer in order of their arrival.
    peers: HashMap<IpAddr, BTreeMap<u64, Arc<Activity>>>,
    arrivals: u64,
}

/// A counted connection.
#[derive(Debug)]
pub(super) struct PeerConnection {
    peers: Arc<Peers>,
    peer: IpAddr,
    arrival: u64,
}

impl Peers {
    pub(super) fn new(limits: &LimitsConfig, proxies: Arc<TrustedProxies>) -> Arc<Self> {
        Arc::new(Self {
            open: Mutex::default(),
            limit: limits.connections_per_peer,
            // The other end is usually a proxy for all clients. Some connections are left for clients that
            // connect directly.
            local_limit: (limits.max_connections.saturating_mul(9) / 10).max(1),
            proxies,
        })
    }

    /// Counts a connection until it is dropped; none if its peer has too many.
    pub(super) fn connect(
        self: &Arc<Self>,
        address: IpAddr,
        activity: &Arc<Activity>,
    ) -> Option<PeerConnection> {
        let peer = network(address);
        let limit = if peer.is_loopback() || self.proxies.has(address) {
            self.local_limit
        } else {
            self.limit
        };
        let mut open = self.open.lock();
        let arrival = open.arrivals;
        open.arrivals += 1;
        let connections = open.peers.entry(peer).or_default();
        if connections.len() >= limit {
            return None;
        }
        connections.insert(arrival, Arc::clone(activity));
        Some(PeerConnection {
            peers: Arc::clone(self),
            peer,
            arrival,
        })
    }

    /// Closes the oldest connection without a valid key, of the peer that has most of them.
    pub(super) fn evict_unauthenticated(&self) {
        let open = self.open.lock();
        let candidates = open.peers.values().filter_map(|connections| {
            let mut unauthenticated = connections.iter().filter(|(_, a)| !a.is_authenticated());
            let (arrival, oldest) = unauthenticated.next()?;
            Some((unauthenticated.count(), Reverse(arrival), oldest))
        });
        let most = candidates.max_by_key(|(others, arrival, _)| (*others, *arrival));
        if let Some((_, _, oldest)) = most {
            oldest.evict();
        }
    }
}

impl Drop for PeerConnection {
    fn drop(&mut self) {
        let mut open = self.peers.open.lock();
        if let Some(connections) = open.peers.get_mut(&self.peer) {
            connections.remove(&self.arrival);
            if connections.is_empty() {
                open.peers.remove(&self.peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Activity, Peers};
    use std::sync::Arc;
    use wharf_config::{LimitsConfig, TrustedProxies};

    #[test]
    fn each_peer_has_its_own_limit() {
        let limits = LimitsConfig {
            connections_per_peer: 2,
            max_connections: 4,
            ..LimitsConfig::default()
        };
        let proxies = TrustedProxies::try_from(vec!["192.0.2.9".to_owned()]).unwrap();
        let peers = Peers::new(&limits, proxies.into());
        let activity = Arc::default();
        let connect = |address: &str| peers.connect(address.parse().unwrap(), &activity);
        let held = [connect("192.0.2.1"), connect("::ffff:192.0.2.1")];
        assert!(held.iter().all(Option::is_some) && connect("192.0.2.1").is_none());
        let other = connect("192.0.2.2");
        assert!(other.is_some());
        let local = ["127.0.0.1", "127.0.0.2", "::1"].map(connect);
        assert!(local.iter().all(Option::is_some) && connect("127.0.0.1").is_none());
        drop(held);
        assert!(connect("192.0.2.1").is_some());
        let proxy = [
            connect("192.0.2.9"),
            connect("192.0.2.9"),
            connect("192.0.2.9"),
        ];
        assert!(proxy.iter().all(Option::is_some) && connect("192.0.2.9").is_none());
        drop((other, local, proxy));
        assert!(peers.open.lock().peers.is_empty());
    }

    #[tokio::test]
    async fn the_oldest_connection_without_a_key_of_the_peer_with_most_is_evicted() {
        let peers = Peers::new(&LimitsConfig::default(), Arc::default());
        let activities = [(); 5].map(|()| Arc::<Activity>::default());
        let addresses = [
            "192.0.2.1",
            "192.0.2.2",
            "192.0.2.2",
            "192.0.2.2",
            "192.0.2.3",
        ];
        let connections = addresses.iter().zip(&activities);
        let _held: Vec<_> = connections
            .map(|(address, activity)| peers.connect(address.parse().unwrap(), activity).unwrap())
            .collect();
        // The first has the oldest connection, but the second has more of them.
        activities[1].authenticate();
        peers.evict_unauthenticated();
        activities[2].evicted().await;
        activities[2].authenticate();
        // Each peer has one connection without a key now.
        peers.evict_unauthenticated();
        activities[0].evicted().await;
    }
}

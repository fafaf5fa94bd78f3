//! The addresses of Wharf and of its nodes. They may be public, and yet a firewall in front of them sees
//! nothing of a request that Wharf itself sends.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use url::{Host, Url};
use wharf_config::Config;

/// The time for which the addresses of names are kept. A cluster has many nodes.
const KEPT: Duration = Duration::from_secs(60);
/// The time for all names. A name that takes longer keeps its earlier addresses.
const LIMIT: Duration = Duration::from_secs(5);

/// The addresses of the public URL and of the nodes' engines.
#[derive(Default)]
pub struct OwnAddresses(Mutex<Known>);

#[derive(Default)]
struct Known {
    of: Option<(Weak<Config>, Instant)>,
    by_host: HashMap<String, Vec<IpAddr>>,
}

impl OwnAddresses {
    /// Returns the addresses by a configuration.
    pub async fn of(&self, config: &Arc<Config>) -> Vec<IpAddr> {
        let mut known = self.0.lock().await;
        let is_fresh = known
            .of
            .as_ref()
            .is_some_and(|(of, at)| of.as_ptr() == Arc::as_ptr(config) && at.elapsed() < KEPT);
        if !is_fresh {
            let base_url = config.base_url.as_ref().map(ToString::to_string);
            let endpoints = config.node.iter().map(|node| node.endpoint.clone());
            let hosts = hosts(base_url.into_iter().chain(endpoints));
            known.by_host = resolve(hosts, std::mem::take(&mut known.by_host)).await;
            known.of = Some((Arc::downgrade(config), Instant::now()));
        }
        known.by_host.values().flatten().copied().collect()
    }
}

/// The hosts of URLs. Engines on this machine have none.
fn hosts(urls: impl Iterator<Item = String>) -> Vec<String> {
    urls.filter_map(|text| match Url::parse(&text).ok()?.host()? {
        Host::Ipv6(address) => Some(address.to_string()),
        host => Some(host.to_string()),
    })
    .collect()
}

/// Looks names up. Those that cannot be looked up keep their earlier addresses.
async fn resolve(
    hosts: Vec<String>,
    mut earlier: HashMap<String, Vec<IpAddr>>,
) -> HashMap<String, Vec<IpAddr>> {
    let end = Instant::now() + LIMIT;
    let lookups: Vec<_> = hosts
        .into_iter()
        .map(|host| {
            let name = host.clone();
            let lookup = tokio::spawn(async move {
                let found = tokio::net::lookup_host((name, 0)).await.ok()?;
                Some(found.map(|found| found.ip().to_canonical()).collect())
            });
            (host, lookup)
        })
        .collect();
    let mut found = HashMap::new();
    for (host, lookup) in lookups {
        let looked_up = timeout(end.saturating_duration_since(Instant::now()), lookup).await;
        let addresses: Option<Vec<IpAddr>> = looked_up.ok().and_then(Result::ok).flatten();
        let addresses = addresses.or_else(|| earlier.remove(&host));
        found.insert(host, addresses.unwrap_or_default());
    }
    found
}

/// Whether an interface of this machine has an address. The kernel gives a connection to such an
/// address that address as its source too. Nothing is sent.
pub fn is_of_this_machine(address: IpAddr) -> bool {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let source = || {
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect((address, 9))?;
        socket.local_addr()
    };
    source().is_ok_and(|source| source.ip() == address)
}

#[cfg(test)]
mod tests {
    use super::{hosts, is_of_this_machine, resolve};
    use std::collections::HashMap;
    use std::net::IpAddr;

    #[test]
    fn the_kernel_knows_the_addresses_of_this_machine() {
        assert!(is_of_this_machine("127.0.0.1".parse().unwrap()));
        for other in ["1.1.1.1", "198.51.100.1", "2606:4700::1111"] {
            assert!(!is_of_this_machine(other.parse().unwrap()), "{other}");
        }
    }

    #[test]
    fn the_public_url_and_engines_on_other_machines_have_hosts() {
        let urls = [
            "https://wharf.example.org",
            "http://1.2.3.4:8080",
            "https://node-1.example.org:2376",
            "https://[2a00::1]:8443",
            "unix:///run/engine.sock",
            "simulated:",
            "simulated:///data/engine",
        ];
        let found = hosts(urls.map(str::to_owned).into_iter());
        let expected = [
            "wharf.example.org",
            "1.2.3.4",
            "node-1.example.org",
            "2a00::1",
        ];
        assert_eq!(found, expected);
    }

    #[tokio::test]
    async fn a_name_that_cannot_be_looked_up_keeps_its_addresses() {
        let address: IpAddr = "1.2.3.4".parse().unwrap();
        let earlier = HashMap::from([("missing.invalid".to_owned(), vec![address])]);
        let hosts = ["missing.invalid", "8.8.8.8", "2a00::1"].map(str::to_owned);
        let found = resolve(hosts.to_vec(), earlier).await;
        assert_eq!(found["missing.invalid"], [address]);
        for literal in ["8.8.8.8", "2a00::1"] {
            assert_eq!(found[literal], [literal.parse::<IpAddr>().unwrap()]);
        }
    }
}

//! Private destinations that instances may reach.

use anyhow::{Context, Result, ensure};
use std::fs;
use std::net::{IpAddr, Ipv4Addr};

/// The files with the name servers of this machine, as engines look for them. systemd-resolved writes the
/// second.
const RESOLVERS: [&str; 2] = ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"];
/// Name servers where the machine's own are out of reach of instances.
const PUBLIC: [Ipv4Addr; 2] = [Ipv4Addr::new(1, 1, 1, 1), Ipv4Addr::new(8, 8, 8, 8)];

/// Ranges and name servers.
#[derive(Debug, Clone, Default)]
pub struct Allowed {
    ranges: Vec<(IpAddr, u8)>,
    name_servers: Vec<IpAddr>,
}

impl Allowed {
    /// Parses addresses and ranges such as `10.1.2.3` and `10.0.0.0/8`. The machine's name servers are
    /// allowed too, for DNS alone.
    pub fn new(ranges: &[String]) -> Result<Self> {
        let files = RESOLVERS.map(|file| fs::read_to_string(file).unwrap_or_default());
        let mut name_servers = files.iter().map(|file| name_servers(file));
        Ok(Self {
            ranges: ranges
                .iter()
                .map(|text| range(text))
                .collect::<Result<_>>()?,
            name_servers: name_servers
                .find(|servers| !servers.is_empty())
                .unwrap_or_default(),
        })
    }

    /// Whether all name servers of the machine are link-local, as in some clouds. The rules keep instances
    /// from such addresses.
    pub fn name_servers_are_link_local(&self) -> bool {
        let is_link_local =
            |server: &IpAddr| matches!(server, IpAddr::V4(v4) if v4.is_link_local());
        !self.name_servers.is_empty() && self.name_servers.iter().all(is_link_local)
    }

    /// IPv4 name servers that instances may use: the machine's, or else public ones.
    pub(crate) fn reachable_name_servers(&self) -> Vec<Ipv4Addr> {
        let v4 = self.name_servers.iter().filter_map(|server| match server {
            IpAddr::V4(server) => Some(*server),
            IpAddr::V6(_) => None,
        });
        // The rules keep instances from link-local addresses.
        let own: Vec<_> = v4.filter(|server| !server.is_link_local()).collect();
        if own.is_empty() { PUBLIC.to_vec() } else { own }
    }

    /// The family of nftables and the members of its set, for each set with members.
    pub(super) fn ranges(&self) -> Vec<(&'static str, String)> {
        let ranges = self.ranges.iter();
        by_family(ranges.map(|(address, prefix)| (*address, format!("{address}/{prefix}"))))
    }

    /// The name servers, by address family.
    pub(super) fn name_servers(&self) -> Vec<(&'static str, String)> {
        let servers = self.name_servers.iter();
        by_family(servers.map(|address| (*address, address.to_string())))
    }
}

fn by_family(members: impl Iterator<Item = (IpAddr, String)>) -> Vec<(&'static str, String)> {
    let (v4, v6): (Vec<_>, Vec<_>) = members.partition(|(address, _)| address.is_ipv4());
    [("ip", v4), ("ip6", v6)]
        .into_iter()
        .filter(|(_, members)| !members.is_empty())
        .map(|(family, members)| {
            let texts: Vec<_> = members.into_iter().map(|(_, text)| text).collect();
            (family, texts.join(", "))
        })
        .collect()
}

fn range(text: &str) -> Result<(IpAddr, u8)> {
    let (address, prefix) = text.split_once('/').unwrap_or((text, ""));
    let parsed: IpAddr = address
        .parse()
        .with_context(|| format!("{text:?} is no range; write 10.1.0.0/16 or 10.1.2.3"))?;
    let most = if parsed.is_ipv4() { 32 } else { 128 };
    let prefix = match prefix {
        "" if !text.contains('/') => most,
        digits => digits.parse().unwrap_or(u8::MAX),
    };
    ensure!(
        prefix <= most,
        "{text:?}: the prefix must be from 0 to {most}"
    );
    Ok((parsed, prefix))
}

/// Engines do not hand out servers at loopback addresses.
fn name_servers(resolvers: &str) -> Vec<IpAddr> {
    resolvers
        .lines()
        .filter_map(|line| line.trim().strip_prefix("nameserver"))
        .filter_map(|address| address.trim().parse::<IpAddr>().ok())
        .filter(|address| !address.is_loopback())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Allowed, name_servers, range};

    #[test]
    fn ranges_are_checked() {
        assert!(range("10.0.0.0/8").is_ok() && range("10.1.2.3").is_ok());
        assert!(range("fd12::/16").is_ok());
        for wrong in ["", "10.0.0.0/33", "10.0.0.0/", "x", "10.0.0.0/8 } accept"] {
            assert!(range(wrong).is_err(), "{wrong}");
        }
        let allowed = Allowed {
            ranges: vec![range("10.1.2.3").unwrap(), range("fd12::/16").unwrap()],
            name_servers: Vec::new(),
        };
        let sets = [("ip", "10.1.2.3/32"), ("ip6", "fd12::/16")];
        assert_eq!(allowed.ranges(), sets.map(|(f, s)| (f, s.to_owned())));
    }

    #[test]
    fn instances_have_name_servers_in_reach() {
        let of = |text| {
            let allowed = Allowed {
                ranges: Vec::new(),
                name_servers: name_servers(text),
            };
            (
                allowed.reachable_name_servers(),
                allowed.name_servers_are_link_local(),
            )
        };
        let own = of("nameserver 169.254.1.1\nnameserver fd00::53\nnameserver 10.0.0.53\n");
        assert_eq!(own, (vec!["10.0.0.53".parse().unwrap()], false));
        assert_eq!(
            of("nameserver 169.254.1.1\n"),
            (super::PUBLIC.to_vec(), true)
        );
        assert!(!of("nameserver 127.0.0.53\n").1);
    }

    #[test]
    fn name_servers_beyond_loopback_are_read() {
        let text =
            "# x\nsearch a\nnameserver 127.0.0.53\nnameserver 10.0.0.53\n nameserver fd00::53\n";
        let servers = name_servers(text)
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>();
        assert_eq!(servers, ["10.0.0.53", "fd00::53"]);
    }
}

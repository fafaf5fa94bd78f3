//! The routes of all tables, from the kernel's files.

use super::InUse;
use ipnet::Ipv4Net;
use std::fs;
use std::net::Ipv4Addr;

/// Routes of all tables, without their interfaces.
const ALL: &str = "/proc/net/fib_trie";
/// Routes of the main table, with their interfaces.
const MAIN: &str = "/proc/net/route";
/// Shorter prefixes stand for the default route.
const SHORTEST: u8 = 8;

/// Lists the ranges of this machine's interfaces and routes. Default routes and loopback are left out.
#[must_use]
pub fn routes() -> Vec<InUse> {
    let main = fs::read_to_string(MAIN).unwrap_or_default();
    let devices: Vec<_> = main.lines().skip(1).filter_map(with_device).collect();
    let all = fs::read_to_string(ALL).unwrap_or_default();
    let mut found: Vec<_> = of_trie(&all)
        .into_iter()
        .chain(devices.iter().map(|(subnet, _)| *subnet))
        .filter(|subnet| subnet.prefix_len() >= SHORTEST && !subnet.addr().is_loopback())
        .collect();
    found.sort_unstable();
    found.dedup();
    let owner = |subnet: &Ipv4Net| {
        let mut devices = devices.iter();
        match devices.find(|(of, _)| of.contains(subnet) && of.prefix_len() >= SHORTEST) {
            Some((_, device)) => format!("interface {device}"),
            None => "a route of this machine".to_owned(),
        }
    };
    let found = found.into_iter();
    found
        .map(|subnet| InUse {
            owner: owner(&subnet),
            subnet,
        })
        .collect()
}

/// The leaves of the trie: a line with an address, and a line with each prefix length.
fn of_trie(text: &str) -> Vec<Ipv4Net> {
    let mut address = None;
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(leaf) = line.strip_prefix("|-- ") {
            address = leaf.parse::<Ipv4Addr>().ok();
        } else if let Some(rest) = line.strip_prefix('/') {
            let mut words = rest.split_whitespace();
            let prefix = words.next().and_then(|digits| digits.parse().ok());
            let subnet = address
                .zip(prefix)
                .and_then(|(address, prefix)| Ipv4Net::new(address, prefix).ok());
            if !words.any(|word| word == "BROADCAST") {
                found.extend(subnet);
            }
        }
    }
    found
}

/// One line: the interface, then destination and mask as hexadecimal numbers in the order of memory.
fn with_device(line: &str) -> Option<(Ipv4Net, String)> {
    let fields: Vec<_> = line.split_whitespace().collect();
    let address = |n: usize| {
        let number = u32::from_str_radix(fields.get(n)?, 16).ok()?;
        Some(Ipv4Addr::from(number.to_ne_bytes()))
    };
    let subnet = Ipv4Net::with_netmask(address(1)?, address(7)?).ok()?;
    Some((subnet, (*fields.first()?).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::{of_trie, with_device};

    #[test]
    fn leaves_of_the_trie_are_ranges() {
        let text = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n     \
            +-- 10.0.0.0/8 2 0 2\n        |-- 10.80.1.0\n           /24 link UNICAST\nLocal:\n     \
            |-- 10.80.1.1\n        /32 host LOCAL\n     |-- 10.80.1.255\n        /32 link BROADCAST\n";
        let found: Vec<_> = of_trie(text).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["0.0.0.0/0", "10.80.1.0/24", "10.80.1.1/32"]);
    }

    #[test]
    fn a_route_has_its_interface() {
        // The file has numbers in the order of memory.
        let number = |address: [u8; 4]| format!("{:08X}", u32::from_ne_bytes(address));
        let (to, mask) = (number([10, 80, 0, 0]), number([255, 255, 0, 0]));
        let line = format!("eth0\t{to}\t00000000\t0001\t0\t0\t0\t{mask}\t0\t0\t0");
        let (subnet, device) = with_device(&line).unwrap();
        assert_eq!(
            (subnet.to_string().as_str(), device.as_str()),
            ("10.80.0.0/16", "eth0")
        );
        assert!(with_device("Iface\tDestination").is_none());
    }
}

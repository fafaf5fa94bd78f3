//! The networks of a private Podman, read from its files.

use serde_json::Value;
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;

/// The prefix of the bridges of Wharf's networks.
const BRIDGE: &str = "whf";
/// The interfaces of the node.
const LINKS: &str = "/sys/class/net";

/// The bridges and subnets of networks.
#[derive(Debug, Default)]
pub(in super::super::super) struct Networks {
    interfaces: Vec<String>,
    subnets: Vec<Subnet>,
}

#[derive(Debug)]
struct Subnet {
    address: u32,
    mask: u32,
}

impl Networks {
    /// Reads the networks of a `network_config_dir`; none if it cannot be read.
    pub fn read(directory: &Path) -> Self {
        let mut networks = Self::default();
        let files = fs::read_dir(directory).into_iter().flatten().flatten();
        for file in files.filter(|file| file.path().extension().is_some_and(|e| e == "json")) {
            let text = fs::read_to_string(file.path()).unwrap_or_default();
            networks.add(&serde_json::from_str(&text).unwrap_or_default());
        }
        networks
    }

    /// The bridges.
    pub fn bridges(&self) -> &[String] {
        &self.interfaces
    }

    pub(super) fn add(&mut self, network: &Value) {
        let interface = network.get("network_interface").and_then(Value::as_str);
        self.interfaces.extend(interface.map(str::to_owned));
        let subnets = network.get("subnets").and_then(Value::as_array);
        for subnet in subnets.into_iter().flatten() {
            let text = subnet.get("subnet").and_then(Value::as_str);
            self.subnets.extend(text.and_then(Subnet::parse));
        }
    }

    /// Whether a word of a rule is a bridge of the networks, a bridge of Wharf that no longer exists, or an
    /// address in one of the networks: `10.1.2.3`, `10.1.2.0/24` or `10.1.2.3:22`.
    pub(super) fn have(&self, word: &str) -> bool {
        // netavark 1.4 keeps some rules of networks that are removed concurrently.
        let is_gone = || word.starts_with(BRIDGE) && !Path::new(LINKS).join(word).exists();
        if self.interfaces.iter().any(|interface| interface == word) || is_gone() {
            return true;
        }
        let address = word.split(['/', ':']).next().unwrap_or_default();
        let Ok(address) = address.parse::<Ipv4Addr>().map(u32::from) else {
            return false;
        };
        self.subnets.iter().any(|subnet| subnet.has(address))
    }
}

impl Subnet {
    fn parse(text: &str) -> Option<Self> {
        let (address, length) = text.split_once('/')?;
        let length: u32 = length.parse().ok()?;
        let mask = u32::MAX
            .checked_shl(32_u32.checked_sub(length)?)
            .unwrap_or(0);
        let address = u32::from(address.parse::<Ipv4Addr>().ok()?) & mask;
        Some(Self { address, mask })
    }

    fn has(&self, address: u32) -> bool {
        address & self.mask == self.address
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::Networks;
    use serde_json::json;

    /// One network, `whf1` with 10.7.3.0/24.
    pub(in super::super) fn one() -> Networks {
        let mut networks = Networks::default();
        networks.add(&json!({
            "name": "wharf-a", "network_interface": "whf1", "subnets": [{ "subnet": "10.7.3.0/24" }],
        }));
        networks
    }

    #[test]
    fn a_network_has_its_bridge_and_its_addresses() {
        let networks = one();
        for word in [
            "whf1",
            "10.7.3.0/24",
            "10.7.3.9",
            "10.7.3.9/32",
            "10.7.3.9:22",
            "whfgone",
        ] {
            assert!(networks.have(word), "{word}");
        }
        for word in ["10.7.4.9", "-j", "", "10.7", "0x2000/0x2000", "224.0.0.0/4"] {
            assert!(!networks.have(word), "{word}");
        }
        assert!(!Networks::default().have("10.7.3.9"));
    }
}

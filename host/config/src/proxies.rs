//! `trusted_proxies`: the proxies that forward the addresses of their clients.

use ipnet::IpNet;
use serde::Deserialize;
use std::net::IpAddr;

/// The addresses and networks of proxies.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Vec<String>")]
pub struct TrustedProxies(Vec<IpNet>);

impl TrustedProxies {
    /// Whether an address is that of a proxy.
    pub fn has(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }

    /// Whether no proxy is trusted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl TryFrom<Vec<String>> for TrustedProxies {
    type Error = String;

    fn try_from(texts: Vec<String>) -> Result<Self, String> {
        let network = |text: String| {
            let address = text.parse::<IpAddr>().map(|address| address.to_canonical());
            let network = address.map(IpNet::from).or_else(|_| text.parse());
            network.map_err(|_| {
                format!(
                    "setting `trusted_proxies`: \"{text}\" must be an IP address or a network, such as \
                     \"127.0.0.1\" or \"10.0.0.0/24\""
                )
            })
        };
        texts
            .into_iter()
            .map(network)
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::TrustedProxies;

    #[test]
    fn proxies_are_addresses_and_networks() {
        let of = |texts: &[&str]| {
            let texts: Vec<_> = texts.iter().map(|text| (*text).to_owned()).collect();
            TrustedProxies::try_from(texts)
        };
        let proxies = of(&["127.0.0.1", "10.0.0.0/24", "2001:db8::/64"]).unwrap();
        for (address, has) in [
            ("127.0.0.1", true),
            ("::ffff:127.0.0.1", true),
            ("127.0.0.2", false),
            ("10.0.0.7", true),
            ("10.0.1.7", false),
            ("2001:db8::7", true),
            ("::1", false),
        ] {
            assert_eq!(proxies.has(address.parse().unwrap()), has, "{address}");
        }
        for wrong in ["", "proxy.example", "10.0.0.0/33", "127.0.0.1:80"] {
            assert!(of(&[wrong]).unwrap_err().contains("trusted_proxies"));
        }
    }
}

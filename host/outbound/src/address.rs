//! The addresses that requests may have. Wharf sends them on behalf of users, so an address that only
//! Wharf's network reaches is refused.

use super::own_addresses::is_of_this_machine;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use url::{Host, Url};
use wharf_config::OutboundConfig;

/// Networks of IPv4 that are not public: the special-purpose registry of IANA, multicast, and an
/// address for the metadata of a cloud.
const SPECIAL_V4: [Ipv4Net; 15] = [
    v4([0, 0, 0, 0], 8),
    v4([10, 0, 0, 0], 8),
    v4([100, 64, 0, 0], 10),
    v4([127, 0, 0, 0], 8),
    v4([168, 63, 129, 16], 32),
    v4([169, 254, 0, 0], 16),
    v4([172, 16, 0, 0], 12),
    v4([192, 0, 0, 0], 24),
    v4([192, 0, 2, 0], 24),
    v4([192, 88, 99, 0], 24),
    v4([192, 168, 0, 0], 16),
    v4([198, 18, 0, 0], 15),
    v4([198, 51, 100, 0], 24),
    v4([203, 0, 113, 0], 24),
    // Multicast, and the reserved addresses above it.
    v4([224, 0, 0, 0], 3),
];

/// The public addresses of IPv6. NAT64, mapped, local and multicast addresses are outside.
const GLOBAL_V6: Ipv6Net = v6([0x2000, 0], 3);

/// Networks within [`GLOBAL_V6`] that are not public: protocols such as Teredo, documentation, 6to4.
const SPECIAL_V6: [Ipv6Net; 4] = [
    v6([0x2001, 0], 23),
    v6([0x2001, 0xdb8], 32),
    v6([0x2002, 0], 16),
    v6([0x3fff, 0], 20),
];

const fn v4([a, b, c, d]: [u8; 4], length: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), length)
}

const fn v6([a, b]: [u16; 2], length: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, 0, 0, 0, 0, 0, 0), length)
}

/// Whether a request may reach an address. `own` has those of the public URL and of the nodes.
pub fn permits(config: &OutboundConfig, own: &[IpAddr], address: IpAddr) -> bool {
    // A mapped address reaches the one within.
    let address = address.to_canonical();
    let mut allowed = config.allow.iter();
    allowed.any(|net: &IpNet| net.contains(&address))
        || (is_public(address) && !own.contains(&address) && !is_of_this_machine(address))
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !SPECIAL_V4.iter().any(|net| net.contains(&address)),
        IpAddr::V6(address) => {
            GLOBAL_V6.contains(&address) && !SPECIAL_V6.iter().any(|net| net.contains(&address))
        }
    }
}

/// Parses a URL. A host name is resolved at each request, so only the address of a URL
/// with one is checked here.
pub fn check_url(config: &OutboundConfig, own: &[IpAddr], text: &str) -> Result<Url, &'static str> {
    let url = Url::parse(text).map_err(|_| "must be a URL such as https://example.com")?;
    match url.scheme() {
        "https" => {}
        "http" if config.http => {}
        "http" => return Err("must begin with https://; the operator has not enabled http://"),
        _ => return Err("must begin with https://"),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must have no user name and no password");
    }
    if url.fragment().is_some() {
        return Err("must have no fragment");
    }
    let address = match url.host() {
        Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
        Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
        Some(Host::Domain(_)) => None,
        None => return Err("must have a host"),
    };
    match address {
        Some(address) if !permits(config, own, address) => {
            Err("must have a public address outside this service; the operator can allow others")
        }
        _ => Ok(url),
    }
}

#[cfg(test)]
mod tests {
    use super::{OutboundConfig, check_url, permits};

    #[test]
    fn only_public_addresses_are_permitted() {
        let config = OutboundConfig::default();
        for refused in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "168.63.129.16",
            "169.254.169.254",
            "172.31.255.255",
            "192.0.0.192",
            "192.168.1.1",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "ff02::1",
        ] {
            let address = refused.parse().unwrap();
            assert!(!permits(&config, &[], address), "{refused}");
        }
        for permitted in [
            "1.1.1.1",
            "100.128.0.1",
            "168.63.129.17",
            "172.32.0.1",
            "::ffff:1.1.1.1",
            "2606:4700::1111",
            "2a00::1",
        ] {
            let address = permitted.parse().unwrap();
            assert!(permits(&config, &[], address), "{permitted}");
            let own = [address.to_canonical()];
            assert!(!permits(&config, &own, address), "{permitted}");
        }
    }

    #[test]
    fn the_operator_can_allow_networks() {
        let config = OutboundConfig {
            allow: ["10.0.0.0/8", "fd00::/8", "1.1.1.1/32"]
                .map(|net| net.parse().unwrap())
                .to_vec(),
            ..OutboundConfig::default()
        };
        for (address, permitted) in [
            ("10.1.2.3", true),
            ("::ffff:10.1.2.3", true),
            ("fd00::1", true),
            ("11.0.0.1", true),
            ("1.1.1.1", true),
            ("1.1.1.2", false),
            ("127.0.0.1", false),
            ("fc00::1", false),
        ] {
            let own = ["1.1.1.1", "1.1.1.2"].map(|own| own.parse().unwrap());
            let found = permits(&config, &own, address.parse().unwrap());
            assert_eq!(found, permitted, "{address}");
        }
    }

    #[test]
    fn urls() {
        let config = OutboundConfig::default();
        for (url, refused) in [
            ("https://example.com/hook?a=b", None),
            ("https://1.1.1.1:8443/", None),
            ("http://example.com/", Some("https://")),
            ("ftp://example.com/", Some("https://")),
            ("/hook", Some("must be a URL")),
            ("https://", Some("must be a URL")),
            ("https://a:b@example.com/", Some("no password")),
            ("https://example.com/#a", Some("fragment")),
            ("https://127.0.0.1/", Some("public")),
            ("https://0x7f.1/", Some("public")),
            ("https://2130706433/", Some("public")),
            ("https://017700000001/", Some("public")),
            ("https://[::ffff:7f00:1]/", Some("public")),
            ("https://169.254.169.254/latest/meta-data/", Some("public")),
        ] {
            let found = check_url(&config, &[], url).err();
            match refused {
                Some(part) => assert!(found.unwrap().contains(part), "{url}: {found:?}"),
                None => assert_eq!(found, None, "{url}"),
            }
        }
        let config = OutboundConfig {
            http: true,
            ..config
        };
        assert!(check_url(&config, &[], "http://example.com/").is_ok());
    }
}

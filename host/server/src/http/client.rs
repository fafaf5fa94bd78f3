//! The client of a request: the peer of its connection, or the address that a trusted proxy forwards.

use http::{Extensions, HeaderMap, HeaderName};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use wharf_config::TrustedProxies;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The client of a request, in its extensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RequestClient {
    pub(super) address: IpAddr,
    /// Whether a proxy forwards the request, whose connection others share.
    pub(super) is_forwarded: bool,
}

impl RequestClient {
    /// The client of a request with these headers. Each proxy appends the address of its own peer, so the
    /// addresses are read from the last one, and none before an untrusted one is believed.
    pub(super) fn of(peer: IpAddr, headers: &HeaderMap, proxies: &TrustedProxies) -> Self {
        let mut client = Self {
            address: peer,
            is_forwarded: false,
        };
        if !proxies.has(peer) {
            return client;
        }
        let values = headers.get_all(X_FORWARDED_FOR).iter();
        let values = values.map(|value| value.to_str().unwrap_or_default());
        let mut addresses: Vec<_> = values.flat_map(|value| value.split(',')).collect();
        while proxies.has(client.address)
            && let Some(address) = addresses.pop().and_then(parse)
        {
            client = Self {
                address,
                is_forwarded: true,
            };
        }
        client
    }

    /// The network of the client, which rates count.
    pub(super) fn network(self) -> IpAddr {
        network(self.address)
    }

    /// The wider network of the client, which budgets of memory count: an IPv6 /48, of which one client may
    /// have all /64 networks.
    pub(super) fn site(self) -> IpAddr {
        match self.network() {
            IpAddr::V6(network) => Ipv6Addr::from_bits(network.to_bits() >> 80 << 80).into(),
            network @ IpAddr::V4(_) => network,
        }
    }
}

/// The client of a request with these extensions; none on the socket of the admin service.
pub(super) fn client(extensions: &Extensions) -> Option<RequestClient> {
    extensions.get().copied()
}

/// Parses an address. Some proxies append the port.
fn parse(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let bare = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    let address = bare.unwrap_or(text).parse::<IpAddr>().ok();
    let address = address.or_else(|| Some(text.parse::<SocketAddr>().ok()?.ip()));
    address.map(|address| address.to_canonical())
}

/// One client usually has a whole IPv6 /64 network, and this machine all loopback addresses, so each
/// of these is counted as one peer.
pub(super) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        address if address.is_loopback() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(address) => {
            Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into()
        }
        other @ IpAddr::V4(_) => other,
    }
}

#[cfg(test)]
mod tests {
    use super::{RequestClient, network};
    use http::{HeaderMap, HeaderValue};
    use wharf_config::TrustedProxies;

    #[test]
    fn the_client_is_the_last_address_that_is_no_proxy() {
        let proxies = ["127.0.0.1", "10.0.0.0/8"].map(str::to_owned).to_vec();
        let proxies = TrustedProxies::try_from(proxies).unwrap();
        let client = |peer: &str, values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append("x-forwarded-for", HeaderValue::from_str(value).unwrap());
            }
            let client = RequestClient::of(peer.parse().unwrap(), &headers, &proxies);
            (client.address.to_string(), client.is_forwarded)
        };
        for (peer, values, address, is_forwarded) in [
            // A peer that is no proxy names nobody.
            ("192.0.2.9", &["192.0.2.1"][..], "192.0.2.9", false),
            ("127.0.0.1", &[], "127.0.0.1", false),
            ("127.0.0.1", &["192.0.2.1"], "192.0.2.1", true),
            // The client's own header comes before the address that the proxy appends.
            ("127.0.0.1", &["192.0.2.7, 192.0.2.1"], "192.0.2.1", true),
            ("127.0.0.1", &["192.0.2.7", "192.0.2.1"], "192.0.2.1", true),
            ("127.0.0.1", &["192.0.2.1, 10.0.0.2"], "192.0.2.1", true),
            ("127.0.0.1", &["10.0.0.3, 10.0.0.2"], "10.0.0.3", true),
            ("127.0.0.1", &["192.0.2.1, unknown"], "127.0.0.1", false),
            ("127.0.0.1", &["192.0.2.1, x, 10.0.0.2"], "10.0.0.2", true),
            ("127.0.0.1", &["192.0.2.1:4711"], "192.0.2.1", true),
            ("127.0.0.1", &["[2001:db8::1]:4711"], "2001:db8::1", true),
            ("127.0.0.1", &["[2001:db8::1]"], "2001:db8::1", true),
            ("127.0.0.1", &["::ffff:192.0.2.1"], "192.0.2.1", true),
            ("127.0.0.1", &["192.0.2.1,"], "127.0.0.1", false),
        ] {
            let expected = (address.to_owned(), is_forwarded);
            assert_eq!(client(peer, values), expected, "{peer} {values:?}");
        }
    }

    #[test]
    fn ipv6_peers_are_networks() {
        let network = |address: &str| network(address.parse().unwrap()).to_string();
        assert_eq!(network("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(network("::1"), "127.0.0.1");
        assert_eq!(network("::ffff:10.0.0.1"), "10.0.0.1");
    }

    #[test]
    fn one_party_may_have_all_networks_of_a_site() {
        let site = |address: &str| {
            let client = RequestClient {
                address: address.parse().unwrap(),
                is_forwarded: false,
            };
            client.site().to_string()
        };
        assert_eq!(site("2001:db8:1:2::7"), "2001:db8:1::");
        assert_eq!(site("2001:db8:1:ffff::7"), "2001:db8:1::");
        assert_eq!(site("2001:db8:2::7"), "2001:db8:2::");
        assert_eq!(site("192.0.2.7"), "192.0.2.7");
    }
}

//! The addresses of published ports in OVN mode.

use std::net::Ipv4Addr;

/// A range of addresses, one for each port of the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublishRange {
    first: Ipv4Addr,
    prefix: u32,
    from: u16,
}

impl PublishRange {
    /// Parses a range such as `198.18.64.0/18`, whose first address is that of the port `from`.
    pub fn parse(cidr: &str, from: u16) -> Option<Self> {
        let (first, prefix) = cidr.split_once('/')?;
        let range = Self {
            first: first.parse().ok()?,
            prefix: prefix
                .parse()
                .ok()
                .filter(|prefix| (1..=32).contains(prefix))?,
            from,
        };
        (u32::from(range.first).checked_rem(range.size()) == Some(0)).then_some(range)
    }

    /// The address of a port of the node; none if the range ends before it.
    pub fn address(&self, node_port: u16) -> Option<Ipv4Addr> {
        let number = u32::from(node_port.checked_sub(self.from)?);
        (number < self.size()).then(|| Ipv4Addr::from(u32::from(self.first) + number))
    }

    /// Whether another range, such as `198.18.0.0/16`, has all of these addresses.
    pub fn is_within(&self, cidr: &str) -> bool {
        Self::parse(cidr, self.from).is_some_and(|outer| {
            let own = u32::from(self.first);
            outer.prefix <= self.prefix && own - own % outer.size() == u32::from(outer.first)
        })
    }

    fn size(&self) -> u32 {
        1 << (32 - self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::PublishRange;

    #[test]
    fn each_port_has_an_address() {
        let range = PublishRange::parse("198.18.40.128/26", 20_000).unwrap();
        let text = |port| range.address(port).map(|address| address.to_string());
        assert_eq!(text(20_000).unwrap(), "198.18.40.128");
        assert_eq!(text(20_063).unwrap(), "198.18.40.191");
        assert!(text(20_064).is_none() && text(19_999).is_none());
    }

    #[test]
    fn a_range_begins_at_its_own_address() {
        for wrong in [
            "",
            "198.18.64.0",
            "198.18.64.0/33",
            "198.18.64.0/0",
            "198.18.64.1/18",
            "x/18",
        ] {
            assert!(PublishRange::parse(wrong, 1).is_none(), "{wrong}");
        }
    }

    #[test]
    fn ranges_contain_smaller_ones() {
        let range = PublishRange::parse("198.18.40.128/26", 20_000).unwrap();
        assert!(range.is_within("198.18.40.128/26") && range.is_within("198.18.0.0/16"));
        assert!(!range.is_within("198.18.40.128/27") && !range.is_within("198.18.41.0/24"));
    }
}

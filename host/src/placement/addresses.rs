//! Private subnets of owners and public addresses, on one node.

use super::bits::Bits;
use crate::domain::ids::UserId;
use ipnet::Ipv4Net;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// The node's end of a network: its first address.
pub fn gateway(net: Ipv4Net) -> Ipv4Addr {
    net.hosts().next().unwrap_or(net.network())
}

/// First address that a machine can have, and how many there are from there on.
fn hosts(net: Ipv4Net) -> (u32, u32) {
    let all = 1_u64 << (32 - net.prefix_len());
    let network = u32::from(net.network());
    if net.prefix_len() < 31 {
        (network + 1, u32::try_from(all - 2).unwrap_or(u32::MAX))
    } else {
        (network, u32::try_from(all).unwrap_or(u32::MAX))
    }
}

/// The subnets that `lan_cidr` is cut into, one for each owner who has instances on the node.
#[derive(Debug, Clone)]
pub struct Lan {
    cidr: Ipv4Net,
    prefix: u8,
    subnets: BTreeMap<u32, Subnet>,
    /// The keys of `subnets`.
    used: Bits,
    owners: BTreeMap<UserId, u32>,
}

#[derive(Debug, Clone)]
struct Subnet {
    owner: UserId,
    /// Counted from the first address that a machine can have.
    taken: Bits,
    /// Outside the subnet, by an older configuration.
    strays: BTreeSet<Ipv4Addr>,
}

impl Lan {
    /// Nothing taken.
    pub fn new(cidr: Ipv4Net, prefix: u8) -> Self {
        Self {
            cidr,
            prefix,
            subnets: BTreeMap::new(),
            used: Bits::default(),
            owners: BTreeMap::new(),
        }
    }

    /// The network with this index.
    pub fn net(&self, index: u32) -> Ipv4Net {
        let base = u32::from(self.cidr.network());
        let size = 1_u32 << (32 - self.prefix);
        let start = base.wrapping_add(index.wrapping_mul(size));
        Ipv4Net::new(Ipv4Addr::from(start), self.prefix).unwrap_or(self.cidr)
    }

    /// A subnet and an address in it for an instance of this owner. The first address is the
    /// node's.
    pub fn free(&self, owner: UserId) -> Option<(u32, Ipv4Addr)> {
        let (index, taken) = match self.owners.get(&owner) {
            Some(index) => (*index, Some(&self.subnets.get(index)?.taken)),
            None => {
                let count = 1_u32 << (self.prefix - self.cidr.prefix_len());
                (self.used.free(0, count)?, None)
            }
        };
        let (first, count) = hosts(self.net(index));
        let nothing = Bits::default();
        let offset = taken.unwrap_or(&nothing).free(1, count)?;
        Some((index, Ipv4Addr::from(first + offset)))
    }

    /// Notes an address as taken.
    pub fn take(&mut self, owner: UserId, index: u32, address: Ipv4Addr) {
        let offset = self.offset(index, address);
        self.owners.insert(owner, index);
        self.used.set(index, true);
        let subnet = self.subnets.entry(index).or_insert_with(|| Subnet {
            owner,
            taken: Bits::default(),
            strays: BTreeSet::new(),
        });
        match offset {
            Some(offset) => subnet.taken.set(offset, true),
            None => drop(subnet.strays.insert(address)),
        }
    }

    /// Frees an address, and the subnet with its last one.
    pub fn release(&mut self, index: u32, address: Ipv4Addr) {
        let offset = self.offset(index, address);
        let Some(subnet) = self.subnets.get_mut(&index) else {
            return;
        };
        match offset {
            Some(offset) => subnet.taken.set(offset, false),
            None => drop(subnet.strays.remove(&address)),
        }
        if subnet.taken.is_empty() && subnet.strays.is_empty() {
            self.owners.remove(&subnet.owner);
            self.subnets.remove(&index);
            self.used.set(index, false);
        }
    }

    fn offset(&self, index: u32, address: Ipv4Addr) -> Option<u32> {
        offset(self.net(index), address)
    }
}

/// Where an address is among those that machines of a network can have.
fn offset(net: Ipv4Net, address: Ipv4Addr) -> Option<u32> {
    let (first, count) = hosts(net);
    let offset = u32::from(address).checked_sub(first)?;
    (offset < count).then_some(offset)
}

/// Public addresses.
#[derive(Debug, Clone)]
pub struct Public(Vec<(Ipv4Net, Bits)>);

impl Public {
    /// Nothing taken.
    pub fn new(nets: Vec<Ipv4Net>) -> Self {
        Self(nets.into_iter().map(|net| (net, Bits::default())).collect())
    }

    /// A free address. The first of each network is its router's, unless it has one or two only.
    pub fn free(&self) -> Option<Ipv4Addr> {
        self.0.iter().find_map(|(net, taken)| {
            let (first, count) = hosts(*net);
            let offset = taken.free(u32::from(net.prefix_len() < 31), count)?;
            Some(Ipv4Addr::from(first + offset))
        })
    }

    /// Marks an address.
    pub fn set(&mut self, address: Ipv4Addr, taken: bool) {
        for (net, bits) in &mut self.0 {
            if let Some(offset) = offset(*net, address) {
                bits.set(offset, taken);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Lan, Public};
    use crate::domain::ids::UserId;
    use std::net::Ipv4Addr;

    #[test]
    fn owners_have_subnets_and_instances_the_lowest_free_address_in_them() {
        let mut lan = Lan::new("10.80.0.0/29".parse().unwrap(), 30);
        let mut take = |owner, expected: Option<(u32, [u8; 4])>| {
            let expected = expected.map(|(index, address)| (index, Ipv4Addr::from(address)));
            assert_eq!(lan.free(UserId(owner)), expected);
            if let Some((index, address)) = expected {
                lan.take(UserId(owner), index, address);
            }
        };
        take(1, Some((0, [10, 80, 0, 2])));
        take(1, None);
        take(2, Some((1, [10, 80, 0, 6])));
        take(3, None);
        lan.release(0, Ipv4Addr::new(10, 80, 0, 2));
        assert_eq!(lan.free(UserId(3)), Some((0, Ipv4Addr::new(10, 80, 0, 2))));
    }

    #[test]
    fn a_subnet_is_held_by_an_address_of_an_older_configuration_too() {
        let mut lan = Lan::new("10.80.0.0/29".parse().unwrap(), 30);
        let old = Ipv4Addr::new(10, 99, 0, 9);
        lan.take(UserId(1), 0, old);
        assert_eq!(lan.free(UserId(2)), Some((1, Ipv4Addr::new(10, 80, 0, 6))));
        lan.release(0, old);
        assert_eq!(lan.free(UserId(2)), Some((0, Ipv4Addr::new(10, 80, 0, 2))));
    }

    #[test]
    fn public_addresses_of_networks_of_every_size() {
        let nets = ["203.0.113.0/30", "198.51.100.4/31", "192.0.2.9/32"];
        let mut public = Public::new(nets.map(|net| net.parse().unwrap()).to_vec());
        let mut all = Vec::new();
        while let Some(address) = public.free() {
            public.set(address, true);
            all.push(address.to_string());
        }
        assert_eq!(
            all,
            ["203.0.113.2", "198.51.100.4", "198.51.100.5", "192.0.2.9"]
        );
    }
}

//! The owners' private subnets and the public addresses of one node.

use super::bits::Bits;
use crate::ids::UserId;
use ipnet::Ipv4Net;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// Returns the first address of a network, which belongs to the node.
pub fn gateway(net: Ipv4Net) -> Ipv4Addr {
    net.hosts().next().unwrap_or(net.network())
}

/// Returns the first host address of a network and the number of host addresses.
fn hosts(net: Ipv4Net) -> (u32, u32) {
    let all = 1_u64 << (32 - net.prefix_len());
    let network = u32::from(net.network());
    if net.prefix_len() < 31 {
        (network + 1, u32::try_from(all - 2).unwrap_or(u32::MAX))
    } else {
        (network, u32::try_from(all).unwrap_or(u32::MAX))
    }
}

/// The subnets of `lan_cidr`, one for each owner with instances on the node.
#[derive(Debug, Clone)]
pub struct Lan {
    cidr: Ipv4Net,
    prefix: u8,
    subnets: BTreeMap<u32, Subnet>,
    /// The set of keys of `subnets`.
    used: Bits,
    owners: BTreeMap<UserId, u32>,
}

#[derive(Debug, Clone)]
struct Subnet {
    owner: UserId,
    /// Offsets of the taken addresses from the first host address.
    taken: Bits,
    /// Taken addresses outside the subnet, left from an earlier configuration.
    strays: BTreeSet<Ipv4Addr>,
}

impl Lan {
    /// Creates a pool with no address taken.
    pub fn new(cidr: Ipv4Net, prefix: u8) -> Self {
        Self {
            cidr,
            prefix,
            subnets: BTreeMap::new(),
            used: Bits::default(),
            owners: BTreeMap::new(),
        }
    }

    /// Returns the subnet with an index.
    pub fn net(&self, index: u32) -> Ipv4Net {
        let base = u32::from(self.cidr.network());
        let size = 1_u32 << (32 - self.prefix);
        let start = base.wrapping_add(index.wrapping_mul(size));
        Ipv4Net::new(Ipv4Addr::from(start), self.prefix).unwrap_or(self.cidr)
    }

    /// Returns a free address for an instance of an owner, with the index of its subnet.
    pub fn free(&self, owner: UserId) -> Option<(u32, Ipv4Addr)> {
        let (index, taken) = match self.owners.get(&owner) {
            Some(index) => (*index, Some(&self.subnets.get(index)?.taken)),
            None => {
                let count = 1_u32 << (self.prefix - self.cidr.prefix_len());
                (self.used.free(0, count)?, None)
            }
        };
        let (first, count) = hosts(self.net(index));
        let empty = Bits::default();
        // Offset 0 is the gateway.
        let offset = taken.unwrap_or(&empty).free(1, count)?;
        Some((index, Ipv4Addr::from(first + offset)))
    }

    /// Marks an address as taken.
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

    /// Frees an address, and its subnet with the last address.
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

/// Returns the offset of an address from the network's first host address.
fn offset(net: Ipv4Net, address: Ipv4Addr) -> Option<u32> {
    let (first, count) = hosts(net);
    let offset = u32::from(address).checked_sub(first)?;
    (offset < count).then_some(offset)
}

/// The public addresses of a node.
#[derive(Debug, Clone)]
pub struct Public(Vec<(Ipv4Net, Bits)>);

impl Public {
    /// Creates a pool with no address taken.
    pub fn new(nets: Vec<Ipv4Net>) -> Self {
        Self(nets.into_iter().map(|net| (net, Bits::default())).collect())
    }

    /// Returns a free address. The first host address of a network belongs to the router, except in a
    /// /31 or /32 network.
    pub fn free(&self) -> Option<Ipv4Addr> {
        self.0.iter().find_map(|(net, taken)| {
            let (first, count) = hosts(*net);
            let offset = taken.free(u32::from(net.prefix_len() < 31), count)?;
            Some(Ipv4Addr::from(first + offset))
        })
    }

    /// Marks an address as taken or free.
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
    use crate::ids::UserId;
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

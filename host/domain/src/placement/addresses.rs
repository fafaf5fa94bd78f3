//! The owners' private subnets of one pool, and the public addresses of one node.

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

/// The subnets of `lan_cidr`, one for each owner with instances. The nodes of a cluster share a pool.
#[derive(Debug, Clone)]
pub struct Lan {
    cidr: Ipv4Net,
    prefix: u8,
    subnets: BTreeMap<u32, Subnet>,
    /// The set of keys of `subnets`.
    used: Bits,
    /// The subnets of each owner. An owner has several only by claims from the time when each node of a
    /// cluster had a pool of its own.
    owners: BTreeMap<UserId, BTreeSet<u32>>,
    /// Subnets that something outside Wharf has.
    subnets_out: BTreeSet<u32>,
    /// Offsets in subnets of addresses that something outside Wharf has.
    addresses_out: BTreeMap<u32, BTreeSet<u32>>,
}

#[derive(Debug, Clone, Default)]
struct Subnet {
    /// The number of claims of each owner. Claims of that time can be of several owners.
    owners: BTreeMap<UserId, u32>,
    /// The number of claims of each address. A move can hold an address twice, and so can claims of that
    /// time. An address of an earlier configuration may be outside the subnet.
    addresses: BTreeMap<Ipv4Addr, u32>,
    /// Offsets of the taken addresses from the first host address.
    taken: Bits,
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
            subnets_out: BTreeSet::new(),
            addresses_out: BTreeMap::new(),
        }
    }

    /// Keeps an address of a subnet out, or the whole subnet, or offers it again.
    pub fn keep_out(&mut self, index: u32, address: Option<Ipv4Addr>, out: bool) {
        let (set, number) = match address {
            None => (&mut self.subnets_out, index),
            Some(address) => {
                let Some(offset) = self.offset(index, address) else {
                    return;
                };
                (self.addresses_out.entry(index).or_default(), offset)
            }
        };
        if out {
            set.insert(number)
        } else {
            set.remove(&number)
        };
    }

    /// Returns the subnet with an index.
    pub fn net(&self, index: u32) -> Ipv4Net {
        let base = u32::from(self.cidr.network());
        let size = 1_u32 << (32 - self.prefix);
        let start = base.wrapping_add(index.wrapping_mul(size));
        Ipv4Net::new(Ipv4Addr::from(start), self.prefix).unwrap_or(self.cidr)
    }

    /// Returns a free address for an instance of an owner, with the index of its subnet. A subnet that
    /// another owner has too gets no further instances.
    pub fn free(&self, owner: UserId) -> Option<(u32, Ipv4Addr)> {
        let own = self.owners.get(&owner).into_iter().flatten().copied();
        let is_offered =
            |index: &u32| self.has_one_owner(*index) && !self.subnets_out.contains(index);
        let mut own = own.filter(is_offered).peekable();
        if own.peek().is_some() {
            return own.find_map(|index| self.free_in(index));
        }
        let count = 1_u32 << (self.prefix - self.cidr.prefix_len());
        self.free_in(self.used.free_of(0, count, &self.subnets_out)?)
    }

    fn free_in(&self, index: u32) -> Option<(u32, Ipv4Addr)> {
        let (first, count) = hosts(self.net(index));
        // Offset 0 is the gateway.
        let none = BTreeSet::new();
        let out = self.addresses_out.get(&index).unwrap_or(&none);
        let offset = match self.subnets.get(&index) {
            Some(subnet) => subnet.taken.free_of(1, count, out)?,
            None => Bits::default().free_of(1, count, out)?,
        };
        Some((index, Ipv4Addr::from(first + offset)))
    }

    /// Returns whether an instance can keep its address on another node of the pool.
    pub fn keeps(&self, index: u32, address: Ipv4Addr) -> bool {
        let subnet = self.subnets.get(&index);
        let claims = subnet.and_then(|subnet| subnet.addresses.get(&address));
        let out = self.addresses_out.get(&index);
        let is_in = |offset: u32| !out.is_some_and(|out| out.contains(&offset));
        claims == Some(&1)
            && self.has_one_owner(index)
            && !self.subnets_out.contains(&index)
            && self.offset(index, address).is_some_and(is_in)
    }

    fn has_one_owner(&self, index: u32) -> bool {
        let subnet = self.subnets.get(&index);
        subnet.is_some_and(|subnet| subnet.owners.len() == 1)
    }

    /// Adds a claim of an address.
    pub fn take(&mut self, owner: UserId, index: u32, address: Ipv4Addr) {
        let offset = self.offset(index, address);
        self.owners.entry(owner).or_default().insert(index);
        self.used.set(index, true);
        let subnet = self.subnets.entry(index).or_default();
        *subnet.owners.entry(owner).or_default() += 1;
        *subnet.addresses.entry(address).or_default() += 1;
        if let Some(offset) = offset {
            subnet.taken.set(offset, true);
        }
    }

    /// Removes a claim of an address. The last claim frees the address, or even the subnet.
    pub fn release(&mut self, owner: UserId, index: u32, address: Ipv4Addr) {
        let offset = self.offset(index, address);
        let Some(subnet) = self.subnets.get_mut(&index) else {
            return;
        };
        if less(&mut subnet.addresses, &address)
            && let Some(offset) = offset
        {
            subnet.taken.set(offset, false);
        }
        if less(&mut subnet.owners, &owner)
            && let Some(own) = self.owners.get_mut(&owner)
        {
            own.remove(&index);
            if own.is_empty() {
                self.owners.remove(&owner);
            }
        }
        if subnet.addresses.is_empty() {
            self.subnets.remove(&index);
            self.used.set(index, false);
        }
    }

    fn offset(&self, index: u32, address: Ipv4Addr) -> Option<u32> {
        offset(self.net(index), address)
    }
}

/// Lowers a count; returns whether it was the last one.
fn less<K: Ord>(counts: &mut BTreeMap<K, u32>, key: &K) -> bool {
    let Some(count) = counts.get_mut(key) else {
        return false;
    };
    *count = count.saturating_sub(1);
    let last = *count == 0;
    if last {
        counts.remove(key);
    }
    last
}

/// Returns the offset of an address from the network's first host address.
fn offset(net: Ipv4Net, address: Ipv4Addr) -> Option<u32> {
    let (first, count) = hosts(net);
    let offset = u32::from(address).checked_sub(first)?;
    (offset < count).then_some(offset)
}

/// The public addresses of a node.
#[derive(Debug, Clone)]
pub struct Public {
    nets: Vec<(Ipv4Net, Bits)>,
    /// Addresses that something outside Wharf has.
    out: BTreeSet<Ipv4Addr>,
}

impl Public {
    /// Creates a pool with no address taken.
    pub fn new(nets: Vec<Ipv4Net>) -> Self {
        Self {
            nets: nets.into_iter().map(|net| (net, Bits::default())).collect(),
            out: BTreeSet::new(),
        }
    }

    /// Returns a free address. The first host address of a network belongs to the router, except in a
    /// /31 or /32 network.
    pub fn free(&self) -> Option<Ipv4Addr> {
        self.nets.iter().find_map(|(net, taken)| {
            let (first, count) = hosts(*net);
            let out = self.out.iter();
            let out = out.filter_map(|address| offset(*net, *address)).collect();
            let offset = taken.free_of(u32::from(net.prefix_len() < 31), count, &out)?;
            Some(Ipv4Addr::from(first + offset))
        })
    }

    /// Keeps an address out, or offers it again.
    pub fn keep_out(&mut self, address: Ipv4Addr, out: bool) {
        if out {
            self.out.insert(address)
        } else {
            self.out.remove(&address)
        };
    }

    /// Marks an address as taken or free.
    pub fn set(&mut self, address: Ipv4Addr, taken: bool) {
        for (net, bits) in &mut self.nets {
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
        lan.release(UserId(1), 0, Ipv4Addr::new(10, 80, 0, 2));
        assert_eq!(lan.free(UserId(3)), Some((0, Ipv4Addr::new(10, 80, 0, 2))));
    }

    #[test]
    fn a_subnet_is_held_by_an_address_of_an_older_configuration_too() {
        let mut lan = Lan::new("10.80.0.0/29".parse().unwrap(), 30);
        let old = Ipv4Addr::new(10, 99, 0, 9);
        lan.take(UserId(1), 0, old);
        assert_eq!(lan.free(UserId(2)), Some((1, Ipv4Addr::new(10, 80, 0, 6))));
        lan.release(UserId(1), 0, old);
        assert_eq!(lan.free(UserId(2)), Some((0, Ipv4Addr::new(10, 80, 0, 2))));
    }

    #[test]
    fn an_address_that_two_claims_have_is_free_after_both() {
        let mut lan = Lan::new("10.80.0.0/28".parse().unwrap(), 30);
        let (ann, bob) = (UserId(1), UserId(2));
        let both = Ipv4Addr::new(10, 80, 0, 2);
        lan.take(ann, 0, both);
        lan.take(bob, 0, both);
        // The subnet has two owners, so it gets no further instances.
        let second = Ipv4Addr::new(10, 80, 0, 6);
        assert_eq!(lan.free(ann), Some((1, second)));
        lan.take(ann, 1, second);
        assert_eq!(lan.free(ann), None);
        assert_eq!(lan.free(bob), Some((2, Ipv4Addr::new(10, 80, 0, 10))));
        assert!(!lan.keeps(0, both) && lan.keeps(1, second));
        lan.release(ann, 0, both);
        assert!(lan.keeps(0, both));
        assert_eq!(lan.free(bob), None, "it is bob's subnet, and full");
        assert_eq!(lan.free(ann), None, "the second subnet is full");
        lan.release(bob, 0, both);
        assert_eq!(lan.free(bob), Some((0, both)));
    }

    #[test]
    fn an_owner_of_two_subnets_uses_the_first_one_with_room() {
        let mut lan = Lan::new("10.80.0.0/27".parse().unwrap(), 29);
        let address = |last| Ipv4Addr::new(10, 80, 0, last);
        for last in 2..=6 {
            lan.take(UserId(1), 0, address(last));
        }
        lan.take(UserId(1), 2, address(18));
        assert_eq!(lan.free(UserId(1)), Some((2, address(19))));
        lan.release(UserId(1), 0, address(4));
        assert_eq!(lan.free(UserId(1)), Some((0, address(4))));
        assert_eq!(lan.free(UserId(2)), Some((1, address(10))));
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

//! Private subnets of owners and public addresses, on one node.

use crate::domain::ids::UserId;
use ipnet::Ipv4Net;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// The node's end of a network: its first address.
pub fn gateway(net: Ipv4Net) -> Ipv4Addr {
    net.hosts().next().unwrap_or(net.network())
}

/// The subnets that `lan_cidr` is cut into, one for each owner who has instances on the node.
#[derive(Debug, Clone)]
pub struct Lan {
    cidr: Ipv4Net,
    prefix: u8,
    subnets: BTreeMap<u32, Subnet>,
    owners: BTreeMap<UserId, u32>,
}

#[derive(Debug, Clone)]
struct Subnet {
    owner: UserId,
    taken: BTreeSet<Ipv4Addr>,
}

impl Lan {
    /// Nothing taken.
    pub fn new(cidr: Ipv4Net, prefix: u8) -> Self {
        Self {
            cidr,
            prefix,
            subnets: BTreeMap::new(),
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

    /// A subnet and an address in it for an instance of this owner.
    pub fn free(&self, owner: UserId) -> Option<(u32, Ipv4Addr)> {
        if let Some(index) = self.owners.get(&owner) {
            let taken = &self.subnets.get(index)?.taken;
            let address = self
                .net(*index)
                .hosts()
                .skip(1)
                .find(|a| !taken.contains(a))?;
            return Some((*index, address));
        }
        let count = 1_u32 << (self.prefix - self.cidr.prefix_len());
        let index = (0..count).find(|i| !self.subnets.contains_key(i))?;
        let address = self.net(index).hosts().nth(1)?;
        Some((index, address))
    }

    /// Notes an address as taken.
    pub fn take(&mut self, owner: UserId, index: u32, address: Ipv4Addr) {
        self.owners.insert(owner, index);
        self.subnets
            .entry(index)
            .or_insert_with(|| Subnet {
                owner,
                taken: BTreeSet::new(),
            })
            .taken
            .insert(address);
    }

    /// Frees an address, and the subnet with its last one.
    pub fn release(&mut self, index: u32, address: Ipv4Addr) {
        let Some(subnet) = self.subnets.get_mut(&index) else {
            return;
        };
        subnet.taken.remove(&address);
        if subnet.taken.is_empty() {
            self.owners.remove(&subnet.owner);
            self.subnets.remove(&index);
        }
    }
}

/// Public addresses.
#[derive(Debug, Clone)]
pub struct Public {
    nets: Vec<Ipv4Net>,
    taken: BTreeSet<Ipv4Addr>,
}

impl Public {
    /// Nothing taken.
    pub fn new(nets: Vec<Ipv4Net>) -> Self {
        Self {
            nets,
            taken: BTreeSet::new(),
        }
    }

    /// A free address. The first of each network is its router's, unless it has one or two only.
    pub fn free(&self) -> Option<Ipv4Addr> {
        self.nets
            .iter()
            .flat_map(|net| net.hosts().skip(usize::from(net.prefix_len() < 31)))
            .find(|a| !self.taken.contains(a))
    }

    /// Marks an address.
    pub fn set(&mut self, address: Ipv4Addr, taken: bool) {
        if taken {
            self.taken.insert(address);
        } else {
            self.taken.remove(&address);
        }
    }
}

//! All nodes and their claims.

use super::addresses::Lan;
use super::allocation::KeptOut;
use super::node::{NodeImages, NodeSetup, NodeUsage, PlacementNode, Supports};
use super::ports::PortPool;
use crate::capacity::Claim;
use crate::ids::{NodeId, UserId};
use crate::kept::{Kept, KeptKind};
use crate::quota::QuotaUsage;
use std::collections::{BTreeMap, HashMap};

/// Port ranges that nodes share.
#[derive(Debug, Clone, Copy)]
pub struct Pools {
    /// SSH ports, per login host.
    pub ssh: (u16, u16),
    /// Web ports.
    pub web: (u16, u16),
}

/// The nodes and the owners, and the sums of the claims of each.
#[derive(Debug, Clone)]
pub struct Inventory {
    pub(super) nodes: Vec<PlacementNode>,
    numbers: HashMap<NodeId, usize>,
    /// Pools of private addresses.
    pub(super) lans: Vec<Lan>,
    pub(super) ssh: BTreeMap<String, PortPool>,
    pub(super) web: PortPool,
    /// Number of web ports of each owner with one.
    web_ports: HashMap<UserId, u32>,
    /// Owners with anything.
    owners: HashMap<UserId, QuotaUsage>,
    /// Allocations that something outside Wharf holds.
    pub(super) kept_out: Vec<KeptOut>,
}

impl Inventory {
    /// An inventory without claims. Nodes are sorted by name, so that ties go to the first name.
    pub fn new(mut setups: Vec<NodeSetup>, pools: Pools) -> Self {
        setups.sort_by(|a, b| a.id.cmp(&b.id));
        let (mut lans, mut shared) = (Vec::new(), BTreeMap::new());
        let node = |setup: NodeSetup| {
            let (cidr, prefix) = (setup.lan_cidr.trunc(), setup.lan_subnet_prefix);
            let new = lans.len();
            let lan = match setup.cluster.clone() {
                Some(cluster) => *shared.entry((cluster, cidr, prefix)).or_insert(new),
                None => new,
            };
            if lan == new {
                lans.push(Lan::new(cidr, prefix));
            }
            PlacementNode::new(setup, lan)
        };
        let nodes: Vec<PlacementNode> = setups.into_iter().map(node).collect();
        Self {
            numbers: nodes
                .iter()
                .enumerate()
                .map(|(i, node)| (node.setup.id.clone(), i))
                .collect(),
            ssh: nodes
                .iter()
                .map(|node| {
                    let pool = PortPool::new(pools.ssh.0, pools.ssh.1);
                    (node.setup.ssh_host.clone(), pool)
                })
                .collect(),
            web: PortPool::new(pools.web.0, pools.web.1),
            web_ports: HashMap::new(),
            owners: HashMap::new(),
            kept_out: Vec::new(),
            nodes,
            lans,
        }
    }

    pub(super) fn node(&self, id: &NodeId) -> Option<&PlacementNode> {
        self.nodes.get(*self.numbers.get(id)?)
    }

    /// The pool of a node's private addresses.
    pub(super) fn lan(&self, node: &PlacementNode) -> Option<&Lan> {
        self.lans.get(node.lan)
    }

    /// Adds a claim to the sums of its node, or removes it from them.
    fn hold(&mut self, claim: &Claim, held: bool) {
        let Some(node) = self.node_mut(&claim.node) else {
            return;
        };
        if held {
            node.add(claim)
        } else {
            node.remove(claim)
        }
        let lan = node.lan;
        let (owner, subnet, address) = (claim.owner, claim.lan_subnet, claim.lan_ipv4);
        match (self.lans.get_mut(lan), held) {
            (Some(lan), true) => lan.take(owner, subnet, address),
            (Some(lan), false) => lan.release(owner, subnet, address),
            (None, _) => {}
        }
    }

    pub(super) fn node_mut(&mut self, id: &NodeId) -> Option<&mut PlacementNode> {
        self.nodes.get_mut(*self.numbers.get(id)?)
    }

    /// Sets the kinds of instances that a node's driver supports.
    pub fn set_supports(&mut self, id: &NodeId, supports: Supports) {
        if let Some(node) = self.node_mut(id) {
            node.set_supports(supports);
        }
    }

    /// Sets the images of flavors on a node.
    pub fn set_images(&mut self, id: &NodeId, images: NodeImages) {
        if let Some(node) = self.node_mut(id) {
            node.images = images;
        }
    }

    /// Makes a node take no new instances and no starts of stopped ones, or ends that.
    pub fn set_drained(&mut self, id: &NodeId, drained: bool) {
        if let Some(node) = self.node_mut(id) {
            node.drained = drained;
        }
    }

    /// Makes a node take nothing new while it does not hold the sizes of disks.
    pub fn set_limits_broken(&mut self, id: &NodeId, broken: bool) {
        if let Some(node) = self.node_mut(id) {
            node.limits_broken = broken;
        }
    }

    /// Returns the capacity of each node and its claims, ordered by name.
    pub fn usage(&self) -> Vec<NodeUsage> {
        self.nodes.iter().map(PlacementNode::usage).collect()
    }

    /// Returns the quantities that an owner's instances hold.
    pub fn used(&self, owner: UserId) -> QuotaUsage {
        self.owners.get(&owner).copied().unwrap_or_default()
    }

    /// Returns whether another web port of an owner leaves a tenth of them to others.
    pub fn shares_web_ports(&self, owner: UserId) -> bool {
        let all = self.web.length();
        self.web_ports.get(&owner).copied().unwrap_or_default() < all - all / 10
    }

    /// Follows a change of the number of open ports of an owner's VM.
    pub fn count_ports(&mut self, owner: UserId, before: usize, after: usize) {
        self.count(
            owner,
            QuotaUsage::of_ports(before),
            QuotaUsage::of_ports(after),
        );
    }

    fn count(&mut self, owner: UserId, before: QuotaUsage, after: QuotaUsage) {
        // Added first: a sum that was saturated at 0 would be wrong.
        let used = self.used(owner).plus(after).less(before);
        if used == QuotaUsage::default() {
            self.owners.remove(&owner);
        } else {
            self.owners.insert(owner, used);
        }
    }

    /// Adds a claim. Of a claim on a node outside the configuration, only its owner and the ports count.
    pub fn add(&mut self, claim: &Claim) {
        self.count(
            claim.owner,
            QuotaUsage::default(),
            QuotaUsage::of_claim(claim),
        );
        self.set_ports(claim, true);
        self.hold(claim, true);
    }

    /// Adds every claim that `each` passes to its argument.
    pub fn add_all<E>(
        &mut self,
        each: impl FnOnce(&mut dyn FnMut(&Claim)) -> Result<(), E>,
    ) -> Result<(), E> {
        each(&mut |claim| self.add(claim))
    }

    /// Replaces a claim by another one on the same node with the same ports.
    pub fn replace(&mut self, old: &Claim, new: &Claim) {
        self.count(
            new.owner,
            QuotaUsage::of_claim(old),
            QuotaUsage::of_claim(new),
        );
        self.hold(old, false);
        self.hold(new, true);
    }

    /// Removes a claim.
    pub fn remove(&mut self, claim: &Claim) {
        self.count(
            claim.owner,
            QuotaUsage::of_claim(claim),
            QuotaUsage::default(),
        );
        self.set_ports(claim, false);
        self.hold(claim, false);
    }

    /// Adds the claim of a volume or a snapshot, or removes it. A lost one has none.
    pub fn hold_kept<K: KeptKind>(&mut self, kept: &Kept<K>, held: bool) {
        if kept.is_lost() {
            return;
        }
        let (none, usage) = (QuotaUsage::default(), K::usage(kept.size_gib));
        let (before, after) = if held { (none, usage) } else { (usage, none) };
        self.count(kept.owner, before, after);
        if let Some(node) = self.node_mut(&kept.node) {
            let (used, size_gib) = (&mut node.used.disk_size_gib, kept.size_gib.into());
            *used = if held {
                used.saturating_add(size_gib)
            } else {
                used.saturating_sub(size_gib)
            };
        }
    }

    /// Adds or removes a claim that a move reserves, beside the claim of its instance. Its owner's sum stays,
    /// and so do ports that the instance keeps.
    pub fn reserve(&mut self, claim: &Claim, keeps_ssh_port: bool, reserved: bool) {
        self.hold(claim, reserved);
        let Some(node) = self.node(&claim.node) else {
            return;
        };
        let host = node.setup.ssh_host.clone();
        if let Some(pool) = self.ssh.get_mut(&host)
            && !keeps_ssh_port
        {
            pool.set(claim.ssh_port, reserved);
        }
    }

    fn set_ports(&mut self, claim: &Claim, taken: bool) {
        let number = self.numbers.get(&claim.node);
        match number.and_then(|number| self.nodes.get(*number)) {
            Some(node) => {
                if let Some(pool) = self.ssh.get_mut(&node.setup.ssh_host) {
                    pool.set(claim.ssh_port, taken);
                }
            }
            // The login host is not known, so the port is taken on each one. It stays taken until the
            // next start, since another node's instance may have it on one of them.
            None if taken => {
                for pool in self.ssh.values_mut() {
                    pool.set(claim.ssh_port, true);
                }
            }
            None => {}
        }
        if let Some(port) = claim.web_port {
            self.web.set(port, taken);
            let owned = self.web_ports.entry(claim.owner).or_default();
            *owned = if taken {
                owned.saturating_add(1)
            } else {
                owned.saturating_sub(1)
            };
            if *owned == 0 {
                self.web_ports.remove(&claim.owner);
            }
        }
    }
}

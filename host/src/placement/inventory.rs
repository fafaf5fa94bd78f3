//! All nodes and what claims leave of them.

use super::node::{NodeSetup, NodeState, Supports};
use super::ports::PortPool;
use crate::domain::capacity::Claim;
use crate::domain::ids::NodeId;
use std::collections::{BTreeMap, HashMap};

/// Ranges that are shared by nodes.
#[derive(Debug, Clone, Copy)]
pub struct Pools {
    /// SSH ports, per login host.
    pub ssh: (u16, u16),
    /// Web ports.
    pub web: (u16, u16),
}

/// What there is and what is taken; equal to the sum of all claims at any time.
#[derive(Debug, Clone)]
pub struct Inventory {
    pub(super) nodes: Vec<NodeState>,
    index: HashMap<NodeId, usize>,
    pub(super) ssh: BTreeMap<String, PortPool>,
    pub(super) web: PortPool,
}

impl Inventory {
    /// Nothing taken yet. Nodes are kept by name, so that ties fall to the first name.
    pub fn new(mut setups: Vec<NodeSetup>, pools: Pools) -> Self {
        setups.sort_by(|a, b| a.id.cmp(&b.id));
        let nodes: Vec<NodeState> = setups.into_iter().map(NodeState::new).collect();
        Self {
            index: nodes
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
            nodes,
        }
    }

    pub(super) fn node(&self, id: &NodeId) -> Option<&NodeState> {
        self.nodes.get(*self.index.get(id)?)
    }

    fn node_mut(&mut self, id: &NodeId) -> Option<&mut NodeState> {
        self.nodes.get_mut(*self.index.get(id)?)
    }

    /// What a driver said its node can run.
    pub fn set_supports(&mut self, id: &NodeId, supports: Supports) {
        if let Some(node) = self.node_mut(id) {
            let has_public = !node.setup.public_ipv4.is_empty();
            node.supports = Supports {
                vms: supports.vms && has_public,
                ..supports
            };
        }
    }

    /// Takes over what drivers said of the nodes of another inventory.
    pub fn keep_supports(&mut self, other: &Self) {
        for (node, known) in self.nodes.iter_mut().zip(&other.nodes) {
            node.supports = known.supports;
        }
    }

    /// A claim came into being. Claims on nodes that the configuration no longer has count
    /// nowhere.
    pub fn add(&mut self, claim: &Claim) {
        self.set_ports(claim, true);
        if let Some(node) = self.node_mut(&claim.node) {
            node.add(claim);
        }
    }

    /// A claim is gone.
    pub fn remove(&mut self, claim: &Claim) {
        self.set_ports(claim, false);
        if let Some(node) = self.node_mut(&claim.node) {
            node.remove(claim);
        }
    }

    fn set_ports(&mut self, claim: &Claim, taken: bool) {
        if let Some(node) = self.index.get(&claim.node).and_then(|i| self.nodes.get(*i))
            && let Some(pool) = self.ssh.get_mut(&node.setup.ssh_host)
        {
            pool.set(claim.ssh_port, taken);
        }
        if let Some(port) = claim.web_port {
            self.web.set(port, taken);
        }
    }
}

//! All nodes and what claims leave of them.

use super::index::FreeIndex;
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
    numbers: HashMap<NodeId, usize>,
    pub(super) index: FreeIndex,
    pub(super) ssh: BTreeMap<String, PortPool>,
    pub(super) web: PortPool,
}

impl Inventory {
    /// Nothing taken yet. Nodes are kept by name, so that ties fall to the first name.
    pub fn new(mut setups: Vec<NodeSetup>, pools: Pools) -> Self {
        setups.sort_by(|a, b| a.id.cmp(&b.id));
        let nodes: Vec<NodeState> = setups.into_iter().map(NodeState::new).collect();
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
            index: FreeIndex::new(&nodes),
            nodes,
        }
    }

    pub(super) fn node(&self, id: &NodeId) -> Option<&NodeState> {
        self.nodes.get(*self.numbers.get(id)?)
    }

    /// Changes a node, if it is there, and finds it by what it has then.
    fn change(&mut self, id: &NodeId, with: impl FnOnce(&mut NodeState)) {
        if let Some(number) = self.numbers.get(id)
            && let Some(node) = self.nodes.get_mut(*number)
        {
            with(node);
            self.index.update(*number, node);
        }
    }

    /// What a driver said its node can run.
    pub fn set_supports(&mut self, id: &NodeId, supports: Supports) {
        self.change(id, |node| node.set_supports(supports));
    }

    /// A claim came into being. Claims on nodes that the configuration no longer has count
    /// nowhere.
    pub fn add(&mut self, claim: &Claim) {
        self.set_ports(claim, true);
        self.change(&claim.node, |node| node.add(claim));
    }

    /// Any number of claims came into being: `each` is given what to call with each of them.
    pub fn add_all<E>(
        &mut self,
        each: impl FnOnce(&mut dyn FnMut(&Claim)) -> Result<(), E>,
    ) -> Result<(), E> {
        let done = each(&mut |claim| {
            self.set_ports(claim, true);
            if let Some(number) = self.numbers.get(&claim.node)
                && let Some(node) = self.nodes.get_mut(*number)
            {
                node.add(claim);
            }
        });
        self.index = FreeIndex::new(&self.nodes);
        done
    }

    /// A claim is another now, of the same node and ports: those are not handed out anew.
    pub fn replace(&mut self, old: &Claim, new: &Claim) {
        self.change(&old.node, |node| {
            node.remove(old);
            node.add(new);
        });
    }

    /// A claim is gone.
    pub fn remove(&mut self, claim: &Claim) {
        self.set_ports(claim, false);
        self.change(&claim.node, |node| node.remove(claim));
    }

    fn set_ports(&mut self, claim: &Claim, taken: bool) {
        if let Some(node) = self
            .numbers
            .get(&claim.node)
            .and_then(|i| self.nodes.get(*i))
            && let Some(pool) = self.ssh.get_mut(&node.setup.ssh_host)
        {
            pool.set(claim.ssh_port, taken);
        }
        if let Some(port) = claim.web_port {
            self.web.set(port, taken);
        }
    }
}

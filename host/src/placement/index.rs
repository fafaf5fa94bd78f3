//! Nodes by what is free of them, so that the best one is found without looking at all: those of one
//! kind are in one tree of [`Cell`]s, in which [`super::search`] finds its way.

use super::cell::{Cell, Free};
use super::node::NodeState;
use crate::domain::capacity::{CpuTier, Size};
use std::collections::{BTreeMap, BTreeSet};

/// Nodes that a request can tell apart by what is free only.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kind {
    pub capacity: Free,
    pub tiers: BTreeSet<CpuTier>,
    pub containers: bool,
    pub vms: bool,
    /// A public address is free.
    pub public: bool,
    /// Models of which a GPU is free.
    pub gpus: BTreeSet<String>,
}

/// All nodes, by their place in the inventory.
#[derive(Debug, Clone, Default)]
pub(super) struct FreeIndex {
    kinds: BTreeMap<Kind, usize>,
    roots: Vec<Root>,
    /// Where each node is: its root, and under which quantities.
    places: Vec<(usize, Free)>,
}

/// The tree of one kind.
#[derive(Debug, Clone)]
struct Root {
    capacity: Free,
    cell: Cell,
}

pub(super) fn quantities(size: Size) -> Free {
    [size.n_vcpus, size.mem_gib, size.disk_size_gib]
}

impl Kind {
    fn of(node: &NodeState) -> Self {
        let free = |gpu: &&crate::domain::capacity::GpuDevice| {
            node.supports.gpus && !node.gpus_used.contains(&gpu.device)
        };
        let models = node.setup.gpus.iter().filter(free);
        Self {
            capacity: quantities(node.setup.capacity),
            tiers: node.setup.cpu_tiers.iter().copied().collect(),
            containers: node.supports.containers,
            vms: node.supports.vms,
            public: node.public.free().is_some(),
            gpus: models.map(|gpu| gpu.model.clone()).collect(),
        }
    }
}

impl FreeIndex {
    /// Of these nodes as they are.
    pub fn new(nodes: &[NodeState]) -> Self {
        let mut index = Self::default();
        for (number, node) in nodes.iter().enumerate() {
            let place = index.enter(number, node);
            index.places.push(place);
        }
        index
    }

    /// A node has changed.
    pub fn update(&mut self, number: usize, node: &NodeState) {
        let Some((root, free)) = self.places.get(number).copied() else {
            return;
        };
        if let Some(Root { capacity, cell }) = self.roots.get_mut(root) {
            cell.remove(number, free, *capacity);
        }
        let place = self.enter(number, node);
        if let Some(known) = self.places.get_mut(number) {
            *known = place;
        }
    }

    /// The nodes of each kind.
    pub fn kinds(&self) -> impl Iterator<Item = (&Kind, &Cell)> {
        let cells = self.kinds.iter();
        cells.filter_map(|(kind, root)| Some((kind, &self.roots.get(*root)?.cell)))
    }

    fn enter(&mut self, number: usize, node: &NodeState) -> (usize, Free) {
        let (kind, free) = (Kind::of(node), quantities(node.free()));
        let (capacity, next) = (kind.capacity, self.roots.len());
        let root = *self.kinds.entry(kind).or_insert(next);
        if root == next {
            let cell = Cell::default();
            self.roots.push(Root { capacity, cell });
        }
        if let Some(Root { cell, .. }) = self.roots.get_mut(root) {
            cell.insert(number, free, capacity);
        }
        (root, free)
    }
}

//! A node in the inventory.

use super::addresses::Public;
use crate::capacity::{Claim, CpuTier, GpuDevice, Size};
use crate::ids::NodeId;
use ipnet::Ipv4Net;
use std::collections::{BTreeMap, BTreeSet};

/// A node as the configuration describes it.
#[derive(Debug, Clone)]
pub struct NodeSetup {
    /// Its name.
    pub id: NodeId,
    /// Total capacity, and the most that one instance can have.
    pub capacity: Size,
    /// vCPUs that instances may claim together: more than the capacity if they are overcommitted.
    pub claimable_vcpus: u32,
    /// GPUs.
    pub gpus: Vec<GpuDevice>,
    /// Takes no new instances.
    pub retired: bool,
    /// CPU tiers on offer.
    pub cpu_tiers: Vec<CpuTier>,
    /// SSH login host.
    pub ssh_host: String,
    /// The cluster to which its engine belongs. Its nodes share the private addresses of an equal range.
    pub cluster: Option<Cluster>,
    /// Network of the private addresses.
    pub lan_cidr: Ipv4Net,
    /// Prefix length of each owner's subnet.
    pub lan_subnet_prefix: u8,
    /// Networks of the public addresses.
    pub public_ipv4: Vec<Ipv4Net>,
}

/// A cluster of engines, as far as one driver speaks to them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cluster {
    /// Its name.
    pub name: String,
    /// The driver.
    pub driver: String,
}

/// The features of a node that its driver reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Supports {
    /// Runs containers.
    pub containers: bool,
    /// Runs VMs.
    pub vms: bool,
    /// Attaches GPUs.
    pub gpus: bool,
    /// Makes volumes.
    pub volumes: bool,
}

/// The images of flavors on a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeImages {
    /// Those that the engine does not have and cannot pull.
    pub missing: BTreeSet<String>,
    /// The contents of others, for users, by reference.
    pub contents: BTreeMap<String, String>,
}

/// The capacity and the claims of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeUsage {
    pub id: NodeId,
    /// Name, total and claimed amount of each quantity.
    pub quantities: [(&'static str, u64, u64); 4],
}

/// A node and the sums of its claims.
#[derive(Debug, Clone)]
pub(super) struct PlacementNode {
    pub setup: NodeSetup,
    /// All that the setup allows, until the driver is probed.
    pub supports: Supports,
    /// The operator drains it.
    pub drained: bool,
    /// It does not hold the sizes of disks.
    pub limits_broken: bool,
    pub images: NodeImages,
    pub used: ClaimedSums,
    pub gpus_used: BTreeSet<String>,
    /// GPUs that something outside Wharf holds.
    pub gpus_out: BTreeSet<String>,
    /// The number of its pool of private addresses.
    pub lan: usize,
    pub public: Public,
}

/// Sums of the claimed quantities.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ClaimedSums {
    pub n_vcpus: u64,
    pub mem_gib: u64,
    pub disk_size_gib: u64,
}

impl PlacementNode {
    pub fn new(setup: NodeSetup, lan: usize) -> Self {
        let vms = !setup.public_ipv4.is_empty();
        Self {
            supports: Supports {
                containers: true,
                vms,
                gpus: !setup.gpus.is_empty(),
                volumes: true,
            },
            drained: false,
            limits_broken: false,
            images: NodeImages::default(),
            used: ClaimedSums::default(),
            gpus_used: BTreeSet::new(),
            gpus_out: BTreeSet::new(),
            lan,
            public: Public::new(setup.public_ipv4.clone()),
            setup,
        }
    }

    /// Sets the driver's report. VMs need a public address besides.
    pub fn set_supports(&mut self, supports: Supports) {
        self.supports = Supports {
            vms: supports.vms && !self.setup.public_ipv4.is_empty(),
            ..supports
        };
    }

    /// The capacity and the claims. A GPU is not part of the sizes.
    pub fn usage(&self) -> NodeUsage {
        let Size {
            mem_gib,
            disk_size_gib,
            ..
        } = self.setup.capacity;
        let gpus = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        NodeUsage {
            id: self.setup.id.clone(),
            quantities: [
                (
                    "n_vcpus",
                    self.setup.claimable_vcpus.into(),
                    self.used.n_vcpus,
                ),
                ("mem_gib", mem_gib.into(), self.used.mem_gib),
                (
                    "disk_size_gib",
                    disk_size_gib.into(),
                    self.used.disk_size_gib,
                ),
                (
                    "n_gpus",
                    gpus(self.setup.gpus.len()),
                    gpus(self.gpus_used.len()),
                ),
            ],
        }
    }

    /// The capacity for one more instance; zero where the claims exceed a capacity that was made smaller.
    pub fn free(&self) -> Size {
        let unclaimed = self.unclaimed();
        Size {
            n_vcpus: unclaimed.n_vcpus.min(self.setup.capacity.n_vcpus),
            ..unclaimed
        }
    }

    /// The capacity for all further instances together.
    pub fn unclaimed(&self) -> Size {
        let left = |total: u32, used: u64| {
            u32::try_from(u64::from(total).saturating_sub(used)).unwrap_or(0)
        };
        Size {
            n_vcpus: left(self.setup.claimable_vcpus, self.used.n_vcpus),
            mem_gib: left(self.setup.capacity.mem_gib, self.used.mem_gib),
            disk_size_gib: left(self.setup.capacity.disk_size_gib, self.used.disk_size_gib),
        }
    }

    /// A free GPU of the model.
    pub fn free_gpu(&self, model: &str) -> Option<&GpuDevice> {
        if !self.supports.gpus {
            return None;
        }
        let is_free = |gpu: &&GpuDevice| {
            gpu.model == model
                && !self.gpus_used.contains(&gpu.device)
                && !self.gpus_out.contains(&gpu.device)
        };
        self.setup.gpus.iter().find(is_free)
    }

    /// Whether the configuration has a GPU, and the driver attaches GPUs.
    pub fn has(&self, gpu: &GpuDevice) -> bool {
        self.supports.gpus && self.setup.gpus.contains(gpu)
    }

    /// Adds a claim's quantities and public address.
    pub fn add(&mut self, claim: &Claim) {
        self.used.disk_size_gib += u64::from(claim.size.disk_size_gib);
        if claim.compute {
            self.used.n_vcpus += u64::from(claim.size.n_vcpus);
            self.used.mem_gib += u64::from(claim.size.mem_gib);
            for gpu in &claim.gpus {
                self.gpus_used.insert(gpu.device.clone());
            }
        }
        if let Some(address) = claim.public_ipv4 {
            self.public.set(address, true);
        }
    }

    /// Removes a claim's quantities and public address.
    pub fn remove(&mut self, claim: &Claim) {
        let less = |used: &mut u64, n: u32| *used = used.saturating_sub(u64::from(n));
        less(&mut self.used.disk_size_gib, claim.size.disk_size_gib);
        if claim.compute {
            less(&mut self.used.n_vcpus, claim.size.n_vcpus);
            less(&mut self.used.mem_gib, claim.size.mem_gib);
            for gpu in &claim.gpus {
                self.gpus_used.remove(&gpu.device);
            }
        }
        if let Some(address) = claim.public_ipv4 {
            self.public.set(address, false);
        }
    }
}

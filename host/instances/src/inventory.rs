//! The inventory, which the database keeps equal to the sum of all claims.

use super::moves::{DRAINED, drained};
use super::nodes::{BROKEN_LIMITS, broken_limits};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;
use wharf_config::{Config, GpuConfig, NodeConfig};
use wharf_db::{CLAIMS, Followed, KeptTable, MOVES, Projection, Read as _, ReadRows, Rows as _};
use wharf_domain::capacity::{Claim, CpuTier, GpuDevice, Size};
use wharf_domain::error::Error;
use wharf_domain::ids::{NodeId, UserId};
use wharf_domain::instance::ResourceType;
use wharf_domain::placement::{
    Allocation, Cluster, Inventory, KeptOut, MovePlace, MoveRequest, NodeImages, NodeSetup,
    NodeUsage, Placement, PlacementRequest, Pools, Supports,
};
use wharf_domain::quota::QuotaUsage;
use wharf_domain::snapshot::OfSnapshot;
use wharf_domain::time::Timestamp;
use wharf_domain::volume::OfVolume;

/// The inventory. A decision holds only within the use case that asks for it. The database runs
/// use cases one at a time, and applies the claims of one before it runs the next.
#[derive(Debug, Clone)]
pub struct SharedInventory {
    inventory: Arc<Mutex<Inventory>>,
    /// Owners of VMs whose rows are damaged: the ports that they hold are not known.
    unknown: Arc<Mutex<BTreeSet<UserId>>>,
}

impl SharedInventory {
    /// The inventory of the nodes of a configuration. Nothing is claimed yet.
    pub fn of(config: &Config) -> Self {
        Self::new(empty_inventory(config))
    }

    /// Nothing is claimed yet: the database adds the claims when it is opened.
    pub fn new(empty: Inventory) -> Self {
        Self {
            inventory: Arc::new(Mutex::new(empty)),
            unknown: Arc::default(),
        }
    }

    /// A place for a new instance.
    pub fn place(&self, request: &PlacementRequest) -> Result<Placement, Error> {
        self.inventory
            .lock()
            .place(request)
            .map_err(Error::Insufficient)
    }

    /// A node for a new volume, or the largest size that a node has room for; `None` if no node makes volumes.
    pub fn place_volume(
        &self,
        size_gib: u32,
        cpu_tier: CpuTier,
        among: Option<&[NodeId]>,
    ) -> Result<NodeId, Option<u32>> {
        let inventory = self.inventory.lock();
        inventory.place_volume(size_gib, cpu_tier, among)
    }

    /// Whether a node would make such a volume, and only does not hold the sizes of disks.
    pub fn has_broken_limits_for(&self, cpu_tier: CpuTier, among: Option<&[NodeId]>) -> bool {
        let inventory = self.inventory.lock();
        inventory.has_broken_limits_for(cpu_tier, among)
    }

    /// The disk of a node that nothing claims, in GiB.
    pub fn free_disk(&self, node: &NodeId) -> u32 {
        self.inventory.lock().free_disk(node)
    }

    /// The free capacity of the largest node for such instances.
    pub fn largest_free(&self, like: &PlacementRequest) -> Option<Size> {
        self.inventory.lock().largest_free(like)
    }

    /// A place on another node for an existing instance.
    pub fn place_move(
        &self,
        request: &MoveRequest<'_>,
        allowed: impl Fn(&NodeId) -> bool,
    ) -> Option<MovePlace> {
        self.inventory.lock().place_move(request, allowed)
    }

    /// Whether a stopped instance can have its compute back.
    pub fn reclaim(&self, claim: &Claim) -> Result<(), Error> {
        self.inventory
            .lock()
            .reclaim(claim)
            .map_err(Error::Insufficient)
    }

    /// Whether the node still has the GPUs of a claim.
    pub fn check_gpus(&self, claim: &Claim) -> Result<(), Error> {
        self.inventory
            .lock()
            .check_gpus(claim)
            .map_err(Error::Insufficient)
    }

    /// Whether a claim can grow.
    pub fn grow(&self, claim: &Claim, to: Size) -> Result<(), Error> {
        self.inventory
            .lock()
            .grow(claim, to)
            .map_err(Error::Insufficient)
    }

    /// The quantities that an owner's instances hold. Fails if they are not known, since the row of a VM is
    /// damaged.
    pub fn known_used(&self, owner: UserId) -> Result<QuotaUsage, Error> {
        if self.unknown.lock().contains(&owner) {
            Err(Error::internal("the ports of a damaged VM are not known"))
        } else {
            Ok(self.used(owner))
        }
    }

    /// The quantities that an owner's instances hold, without the ports of damaged VMs.
    pub fn used(&self, owner: UserId) -> QuotaUsage {
        self.inventory.lock().used(owner)
    }

    /// Whether another web port of an owner leaves a tenth of them to others.
    pub fn shares_web_ports(&self, owner: UserId) -> bool {
        self.inventory.lock().shares_web_ports(owner)
    }

    /// The capacity of each node and its claims.
    pub fn usage(&self) -> Vec<NodeUsage> {
        self.inventory.lock().usage()
    }

    /// Notes what a node's driver said that the node can run. That is in no row.
    pub fn set_supports(&self, node: &NodeId, supports: Supports) {
        self.inventory.lock().set_supports(node, supports);
    }
}

impl SharedInventory {
    /// A place for a new instance that lost allocations to something outside Wharf.
    pub fn replacement(
        &self,
        claim: &Claim,
        request: &PlacementRequest,
        lost: &[Allocation],
    ) -> Option<Placement> {
        self.inventory.lock().replacement(claim, request, lost)
    }

    /// Keeps an allocation out of placements until a time. That is in no row.
    pub fn keep_out(&self, node: &NodeId, what: Allocation, until: Timestamp) {
        self.inventory.lock().keep_out(node, what, until);
    }

    /// Offers allocations again whose time is over.
    pub fn offer_again(&self, now: Timestamp) {
        self.inventory.lock().offer_again(now);
    }

    /// The allocations that are kept out.
    pub fn kept_out(&self) -> Vec<KeptOut> {
        self.inventory.lock().kept_out().to_vec()
    }

    /// Whether nodes take instances of this kind, and all of them lack one of the images.
    pub fn lacks_image(&self, resource_type: ResourceType, images: &[String]) -> bool {
        self.inventory.lock().lacks_image(resource_type, images)
    }

    /// The contents of images on the nodes that take instances of this kind and lack none of the images.
    pub fn contents(&self, resource_type: ResourceType, images: &[String]) -> BTreeSet<String> {
        self.inventory.lock().contents(resource_type, images)
    }

    /// Notes the images of flavors on a node. That is in no row.
    pub fn set_images(&self, node: &NodeId, images: NodeImages) {
        self.inventory.lock().set_images(node, images);
    }
}

impl Projection for SharedInventory {
    fn load(&mut self, rows: &ReadRows) -> Result<(), Error> {
        let mut vms = Vec::new();
        self.inventory.lock().add_all(|add| {
            rows.each_claim(|id, claim| {
                add(&claim);
                if claim.public_ipv4.is_some() {
                    vms.push((id, claim.owner));
                }
            })
        })?;
        for row in rows.under(&MOVES, &())? {
            let (_, moving) = row?;
            self.inventory
                .lock()
                .reserve(&moving.claim, moving.keeps_ssh_port, true);
        }
        hold_all::<OfVolume>(&mut self.inventory.lock(), rows)?;
        hold_all::<OfSnapshot>(&mut self.inventory.lock(), rows)?;
        for node in drained(rows)? {
            self.inventory.lock().set_drained(&node, true);
        }
        for node in broken_limits(rows)?.into_keys() {
            self.inventory.lock().set_limits_broken(&node, true);
        }
        for (id, owner) in vms {
            match rows.instance(id) {
                Ok(Some(vm)) => self.count_ports(vm.owner, 0, vm.wan_ports.len()),
                Ok(None) => {}
                // A damaged row of one user does not keep the server from its start.
                Err(error) => {
                    tracing::error!(owner = owner.0, error = %error.chain(), "the quota of a user is not known");
                    self.unknown.lock().insert(owner);
                }
            }
        }
        Ok(())
    }

    fn count_ports(&mut self, owner: UserId, before: usize, after: usize) {
        self.inventory.lock().count_ports(owner, before, after);
    }

    fn follow(&mut self, change: &Followed) {
        let mut inventory = self.inventory.lock();
        if let Some((_, before, after)) = CLAIMS.change(change) {
            match (before, after) {
                (Some(before), Some(after)) => inventory.replace(before, after),
                (Some(before), None) => inventory.remove(before),
                (None, Some(after)) => inventory.add(after),
                (None, None) => {}
            }
        } else if let Some((_, before, after)) = MOVES.change(change) {
            // A reserved claim counts beside the instance's own claim, and not for its owner.
            for (row, reserved) in [(before, false), (after, true)] {
                if let Some(row) = row {
                    inventory.reserve(&row.claim, row.keeps_ssh_port, reserved);
                }
            }
        } else if let Some(((node, ()), _, after)) = DRAINED.change(change) {
            inventory.set_drained(&NodeId(node.clone()), after.is_some());
        } else if let Some(((node, ()), _, after)) = BROKEN_LIMITS.change(change) {
            inventory.set_limits_broken(&NodeId(node.clone()), after.is_some());
        } else {
            follow_kept::<OfVolume>(&mut inventory, change);
            follow_kept::<OfSnapshot>(&mut inventory, change);
        }
    }
}

/// Adds the claims of all volumes or snapshots.
fn hold_all<K: KeptTable>(inventory: &mut Inventory, rows: &ReadRows) -> Result<(), Error> {
    for row in rows.all(K::ROWS)? {
        match row {
            Ok((_, (), kept)) => inventory.hold_kept(&kept, true),
            Err(error) => {
                tracing::error!(error = %error.chain(), "the claim of a {} is not known", K::WORD);
            }
        }
    }
    Ok(())
}

/// Follows a change of the rows of this kind.
fn follow_kept<K: KeptTable>(inventory: &mut Inventory, change: &Followed) {
    if let Some((_, before, after)) = K::ROWS.change(change) {
        for (kept, held) in [(after, true), (before, false)] {
            if let Some(kept) = kept {
                inventory.hold_kept(kept, held);
            }
        }
    }
}

/// The inventory of all nodes without claims.
fn empty_inventory(config: &Config) -> Inventory {
    let setups = config.node.iter().map(|node| NodeSetup {
        id: NodeId(node.name.clone()),
        capacity: Size {
            n_vcpus: node.capacity.n_vcpus,
            mem_gib: node.capacity.mem_gib,
            disk_size_gib: node.capacity.disk_size_gib,
        },
        claimable_vcpus: node.claimable_vcpus(),
        gpus: gpus(node),
        retired: node.retired,
        cpu_tiers: node.cpu_tiers.clone(),
        ssh_host: config.ssh_host_of(node),
        cluster: node.cluster.clone().map(|name| Cluster {
            name,
            driver: node.driver.clone(),
        }),
        lan_cidr: node.lan_cidr,
        lan_subnet_prefix: node.lan_subnet_prefix,
        public_ipv4: node.public_ipv4.clone(),
    });
    let pools = Pools {
        ssh: (config.ssh_ports.from, config.ssh_ports.to),
        web: (config.web.from, config.web.to),
    };
    Inventory::new(setups.collect(), pools)
}

fn gpus(node: &NodeConfig) -> Vec<GpuDevice> {
    let of_model = |gpu: &GpuConfig| {
        let model = gpu.model.clone();
        let device = move |device| GpuDevice {
            model: model.clone(),
            device,
        };
        gpu.device_names()
            .into_iter()
            .map(device)
            .collect::<Vec<_>>()
    };
    node.gpus.iter().flat_map(of_model).collect()
}

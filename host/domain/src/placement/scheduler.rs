//! The scheduler: it chooses a node, or names the shortfall of the nearest one.
//!
//! It looks at every node, in order of their names. That takes microseconds for hundreds of nodes,
//! far less than the commit that follows.

use super::inventory::Inventory;
use super::node::PlacementNode;
use super::ports::PortPool;
use crate::capacity::{Claim, CpuTier, GpuDevice, Size};
use crate::error::Shortfall;
use crate::ids::{NodeId, UserId};
use crate::instance::ResourceType;
use crate::kept::disk;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// The requirements of a new instance.
#[derive(Debug, Clone)]
pub struct PlacementRequest {
    /// Its owner.
    pub owner: UserId,
    /// VM or container.
    pub resource_type: ResourceType,
    /// Size.
    pub size: Size,
    /// CPU tier.
    pub cpu_tier: CpuTier,
    /// Model of its GPU, if any.
    pub gpu_model: Option<String>,
    /// Name of its flavor.
    pub flavor: String,
    /// Whether it has a web page.
    pub web: bool,
    /// Its images, one for each kind of engine.
    pub images: Vec<String>,
    /// The nodes that will do, such as the node of its volumes; all of them if none.
    pub nodes: Option<Vec<NodeId>>,
}

/// A chosen node and the claim on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// The claim to write.
    pub claim: Claim,
    /// Login host of the node.
    pub ssh_host: String,
}

/// Ports and addresses for an instance; `None` where there is none left.
struct ChosenAddresses {
    ssh_port: Option<u16>,
    lan: Option<(u32, Ipv4Addr)>,
    web_port: Option<u16>,
    public_ipv4: Option<Ipv4Addr>,
}

impl Inventory {
    /// Chooses the node with the most headroom afterwards, so that load spreads; ties go to the first
    /// name. Nothing is claimed before the caller adds the claim.
    pub fn place(&self, request: &PlacementRequest) -> Result<Placement, Shortfall> {
        let mut best: Option<(f64, &PlacementNode)> = None;
        for node in self.nodes.iter().filter(|node| can_run(node, request)) {
            let Some(left) = headroom(node, request.size) else {
                continue;
            };
            if best.is_none_or(|(most, _)| left > most)
                && has_gpu(node, request)
                && self.used_up(node, request).next().is_none()
            {
                best = Some((left, node));
            }
        }
        best.and_then(|(_, node)| self.placement(node, request))
            .ok_or_else(|| Shortfall {
                limits_broken: self.has_broken_limits(),
                ..self.nearest(request)
            })
    }

    /// Chooses the node with the most headroom for a volume, among all or among these. The error is the largest
    /// size that a node has room for; `None` if none of them makes volumes.
    pub fn place_volume(
        &self,
        size_gib: u32,
        cpu_tier: CpuTier,
        among: Option<&[NodeId]>,
    ) -> Result<NodeId, Option<u32>> {
        let takes =
            |node: &&PlacementNode| !node.limits_broken && keeps_volumes(node, cpu_tier, among);
        let nodes = || self.nodes.iter().filter(takes);
        let mut best: Option<(f64, &PlacementNode)> = None;
        for node in nodes() {
            if let Some(left) = headroom(node, disk(size_gib))
                && best.is_none_or(|(most, _)| left > most)
            {
                best = Some((left, node));
            }
        }
        match best {
            Some((_, node)) => Ok(node.setup.id.clone()),
            None => Err(nodes().map(|node| node.unclaimed().disk_size_gib).max()),
        }
    }

    /// The disk of a node that nothing claims, in GiB.
    pub fn free_disk(&self, id: &NodeId) -> u32 {
        self.node(id)
            .map_or(0, |node| node.unclaimed().disk_size_gib)
    }

    /// The free capacity of the node with the most free vCPUs, then RAM, then disk. Only nodes that run
    /// instances like the requested one, of any size, count.
    pub fn largest_free(&self, request: &PlacementRequest) -> Option<Size> {
        let nodes = self.nodes.iter().filter(|node| can_run(node, request));
        nodes
            .map(PlacementNode::free)
            .max_by_key(|free| (free.n_vcpus, free.mem_gib, free.disk_size_gib))
    }

    /// Whether a node would make such a volume, among all or among these, and only does not hold the sizes of disks.
    pub fn has_broken_limits_for(&self, cpu_tier: CpuTier, among: Option<&[NodeId]>) -> bool {
        let mut nodes = self.nodes.iter();
        nodes.any(|node| node.limits_broken && keeps_volumes(node, cpu_tier, among))
    }

    /// Whether a node that would take new instances does not hold the sizes of disks.
    fn has_broken_limits(&self) -> bool {
        let mut nodes = self.nodes.iter();
        nodes.any(|node| node.limits_broken && !node.setup.retired && !node.drained)
    }

    /// Whether nodes take instances of this kind, and all of them lack one of the images.
    pub fn lacks_image(&self, resource_type: ResourceType, images: &[String]) -> bool {
        let takes = |node: &&PlacementNode| takes_new(node, resource_type);
        let mut taking = self.nodes.iter().filter(takes).peekable();
        taking.peek().is_some() && taking.all(|node| lacks(node, images))
    }

    /// The contents of images on the nodes that take instances of this kind and lack none of the images.
    pub fn contents(&self, resource_type: ResourceType, images: &[String]) -> BTreeSet<String> {
        let mut contents = BTreeSet::new();
        for node in &self.nodes {
            if takes_new(node, resource_type) && !lacks(node, images) {
                let known = images
                    .iter()
                    .filter_map(|image| node.images.contents.get(image));
                contents.extend(known.cloned());
            }
        }
        contents
    }

    /// The shortfall of the node with the least distance to the request; ties go to the first name.
    fn nearest(&self, request: &PlacementRequest) -> Shortfall {
        let mut nearest: Option<(f64, &PlacementNode)> = None;
        for node in self.nodes.iter().filter(|node| can_run(node, request)) {
            // The ports and addresses of most nodes need no look: they only add to the distance.
            let quantities = distance(short_quantities(node, request));
            if nearest.is_some_and(|(least, _)| quantities >= least) {
                continue;
            }
            let distance = distance(self.shortages(node, request));
            if nearest.is_none_or(|(least, _)| distance < least) {
                nearest = Some((distance, node));
            }
        }
        match nearest {
            Some((_, node)) => self.shortages(node, request).collect::<Vec<_>>().into(),
            None if self.nodes.iter().any(|node| is_offered(node, request)) => Shortfall {
                no_image: Some(request.flavor.clone()),
                ..vec![("flavor", 1, 0)].into()
            },
            // The caller names the volumes that bind the instance to its node.
            None if request.nodes.is_some() => Vec::<crate::shortage::Shortage>::new().into(),
            None => no_node(request),
        }
    }

    /// Checks that a stopped instance's compute is free on its node.
    pub fn reclaim(&self, claim: &Claim) -> Result<(), Shortfall> {
        let Some(node) = self.node(&claim.node).filter(|node| !node.drained) else {
            return Err(gone(claim.size));
        };
        let free = node.free();
        let mut fields = Vec::new();
        short("n_vcpus", claim.size.n_vcpus, free.n_vcpus, &mut fields);
        short("mem_gib", claim.size.mem_gib, free.mem_gib, &mut fields);
        let is_free = |gpu: &&GpuDevice| node.has(gpu) && !node.gpus_used.contains(&gpu.device);
        short_gpus(claim, is_free, &mut fields);
        into_result(fields)
    }

    /// Checks that the node still has the GPUs of a claim that is held.
    pub fn check_gpus(&self, claim: &Claim) -> Result<(), Shortfall> {
        let node = self.node(&claim.node);
        let has = |gpu: &&GpuDevice| node.is_some_and(|node| node.has(gpu));
        let mut fields = Vec::new();
        short_gpus(claim, has, &mut fields);
        into_result(fields)
    }

    /// Checks that an instance's claim can grow to a size on its node. Compute counts only if it is
    /// claimed.
    pub fn grow(&self, claim: &Claim, to: Size) -> Result<(), Shortfall> {
        let Some(node) = self.node(&claim.node) else {
            return Err(gone(to));
        };
        let free = if node.drained {
            Size::default()
        } else {
            node.free()
        };
        let held = claim.size;
        let mut fields = Vec::new();
        if claim.compute {
            if to.n_vcpus > held.n_vcpus {
                let most = free.n_vcpus.saturating_add(held.n_vcpus);
                let most = most.min(node.setup.capacity.n_vcpus.max(held.n_vcpus));
                short("n_vcpus", to.n_vcpus, most, &mut fields);
            }
            if to.mem_gib > held.mem_gib {
                let most = free.mem_gib.saturating_add(held.mem_gib);
                short("mem_gib", to.mem_gib, most, &mut fields);
            }
        }
        if to.disk_size_gib > held.disk_size_gib {
            let most = free.disk_size_gib.saturating_add(held.disk_size_gib);
            short("disk_size_gib", to.disk_size_gib, most, &mut fields);
        }
        into_result(fields)
    }

    fn addresses(&self, node: &PlacementNode, request: &PlacementRequest) -> ChosenAddresses {
        let vm = request.resource_type == ResourceType::Vm;
        let ssh = self.ssh.get(&node.setup.ssh_host);
        ChosenAddresses {
            ssh_port: ssh.and_then(PortPool::free),
            lan: self.lan(node).and_then(|lan| lan.free(request.owner)),
            web_port: request.web.then(|| self.web.free()).flatten(),
            public_ipv4: vm.then(|| node.public.free()).flatten(),
        }
    }

    /// The fields of ports and addresses that a node has run out of.
    pub(super) fn used_up(
        &self,
        node: &PlacementNode,
        request: &PlacementRequest,
    ) -> impl Iterator<Item = &'static str> + use<> {
        let vm = request.resource_type == ResourceType::Vm;
        let addresses = self.addresses(node, request);
        [
            ("wan_ssh_port", addresses.ssh_port.is_none()),
            ("lan_ipv4", addresses.lan.is_none()),
            ("webapp_url", request.web && addresses.web_port.is_none()),
            ("public_ipv4", vm && addresses.public_ipv4.is_none()),
        ]
        .into_iter()
        .filter_map(|(field, used_up)| used_up.then_some(field))
    }

    /// The shortfall of a node: quantities, GPU, ports and addresses together, so that a smaller
    /// request does not fail on the next field.
    fn shortages(
        &self,
        node: &PlacementNode,
        request: &PlacementRequest,
    ) -> impl Iterator<Item = Field> + use<> {
        let used_up = self.used_up(node, request).map(|field| (field, 1, 0));
        short_quantities(node, request).chain(used_up)
    }

    /// The placement on a node; `None` if a port or an address is missing.
    pub(super) fn placement(
        &self,
        node: &PlacementNode,
        request: &PlacementRequest,
    ) -> Option<Placement> {
        let addresses = self.addresses(node, request);
        let (lan_subnet, lan_ipv4) = addresses.lan?;
        let model = request.gpu_model.as_ref();
        Some(Placement {
            claim: Claim {
                node: node.setup.id.clone(),
                owner: request.owner,
                compute: true,
                size: request.size,
                gpus: model
                    .and_then(|m| node.free_gpu(m))
                    .cloned()
                    .into_iter()
                    .collect(),
                ssh_port: addresses.ssh_port?,
                web_port: addresses.web_port,
                lan_subnet,
                lan_ipv4,
                public_ipv4: addresses.public_ipv4,
            },
            ssh_host: node.setup.ssh_host.clone(),
        })
    }
}

type Field = (&'static str, u64, u64);

/// The short quantities of a node, its GPU included.
fn short_quantities(
    node: &PlacementNode,
    request: &PlacementRequest,
) -> impl Iterator<Item = Field> + use<> {
    let (free, size) = (node.free(), request.size);
    let gpu = request.gpu_model.is_some();
    let quantities = [
        ("n_vcpus", size.n_vcpus, free.n_vcpus),
        ("mem_gib", size.mem_gib, free.mem_gib),
        ("disk_size_gib", size.disk_size_gib, free.disk_size_gib),
        ("n_gpus", gpu.into(), has_gpu(node, request).into()),
    ];
    let fields = quantities.into_iter();
    fields
        .filter(|(_, requested, available)| requested > available)
        .map(|(field, requested, available)| (field, requested.into(), available.into()))
}

/// Whether a node runs such instances at all, however much is free.
pub(super) fn can_run(node: &PlacementNode, request: &PlacementRequest) -> bool {
    is_offered(node, request) && !lacks(node, &request.images)
}

fn lacks(node: &PlacementNode, images: &[String]) -> bool {
    images
        .iter()
        .any(|image| node.images.missing.contains(image))
}

/// Whether a node runs such instances, if it has their image.
fn is_offered(node: &PlacementNode, request: &PlacementRequest) -> bool {
    let bound_to = request.nodes.as_ref();
    takes_new(node, request.resource_type)
        && node.setup.cpu_tiers.contains(&request.cpu_tier)
        && bound_to.is_none_or(|ids| ids.contains(&node.setup.id))
}

/// Whether a node takes new instances of a kind.
fn takes_new(node: &PlacementNode, resource_type: ResourceType) -> bool {
    is_open(node, resource_type) && !node.limits_broken
}

/// Whether a node takes new instances of a kind, if it holds the sizes of disks.
fn is_open(node: &PlacementNode, resource_type: ResourceType) -> bool {
    let runs = match resource_type {
        ResourceType::Vm => node.supports.vms,
        ResourceType::Container => node.supports.containers,
    };
    runs && !node.setup.retired && !node.drained
}

/// Whether a node makes volumes for such instances, if it holds the sizes of disks.
fn keeps_volumes(node: &PlacementNode, cpu_tier: CpuTier, among: Option<&[NodeId]>) -> bool {
    node.supports.volumes
        && among.is_none_or(|nodes| nodes.contains(&node.setup.id))
        && is_open(node, ResourceType::Container)
        && node.setup.cpu_tiers.contains(&cpu_tier)
}

/// Whether a node has the GPU of a request, if it wants one.
fn has_gpu(node: &PlacementNode, request: &PlacementRequest) -> bool {
    let model = request.gpu_model.as_ref();
    model.is_none_or(|model| node.free_gpu(model).is_some())
}

fn short(field: &'static str, requested: u32, available: u32, fields: &mut Vec<Field>) {
    if requested > available {
        fields.push((field, u64::from(requested), u64::from(available)));
    }
}

fn short_gpus(claim: &Claim, available: impl Fn(&&GpuDevice) -> bool, fields: &mut Vec<Field>) {
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let left = claim.gpus.iter().filter(available).count();
    short("n_gpus", count(claim.gpus.len()), count(left), fields);
}

fn into_result(fields: Vec<Field>) -> Result<(), Shortfall> {
    if fields.is_empty() {
        Ok(())
    } else {
        Err(fields.into())
    }
}

/// The least share of any quantity that is left after placing; `None` if the node is too full.
pub(super) fn headroom(node: &PlacementNode, size: Size) -> Option<f64> {
    let (free, total) = (node.unclaimed(), node.setup.capacity);
    let share = |requested: u32, free: u32, total: u32| {
        let left = free.checked_sub(requested)?;
        Some(f64::from(left) / f64::from(total.max(1)))
    };
    if size.n_vcpus > total.n_vcpus {
        return None;
    }
    let vcpus = share(size.n_vcpus, free.n_vcpus, node.setup.claimable_vcpus)?;
    let mem = share(size.mem_gib, free.mem_gib, total.mem_gib)?;
    let disk = share(size.disk_size_gib, free.disk_size_gib, total.disk_size_gib)?;
    Some(vcpus.min(mem).min(disk))
}

/// The sum of the relative shortfalls.
#[expect(
    clippy::cast_precision_loss,
    reason = "a ratio of small integers, for comparison only"
)]
fn distance(fields: impl Iterator<Item = Field>) -> f64 {
    fields
        .map(|(_, requested, available)| (requested - available) as f64 / requested.max(1) as f64)
        .sum()
}

/// The shortfall where no node runs such instances.
fn no_node(request: &PlacementRequest) -> Shortfall {
    if request.resource_type == ResourceType::Vm {
        return vec![("public_ipv4", 1, 0)].into();
    }
    gone(request.size)
}

/// The shortfall where the node of a claim is drained or no longer configured.
fn gone(size: Size) -> Shortfall {
    let compute = vec![
        ("n_vcpus", u64::from(size.n_vcpus), 0),
        ("mem_gib", u64::from(size.mem_gib), 0),
    ];
    compute.into()
}

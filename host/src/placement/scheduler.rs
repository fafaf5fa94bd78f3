//! Chooses a node, or says what is short on the one that comes closest.

use super::cell::Free;
use super::index::{Kind, quantities};
use super::inventory::Inventory;
use super::node::NodeState;
use crate::domain::capacity::{Claim, CpuTier, GpuDevice, Size};
use crate::domain::error::Shortfall;
use crate::domain::ids::UserId;
use crate::domain::instance::ResourceType;

/// What a new instance needs.
#[derive(Debug, Clone)]
pub struct Ask {
    /// Whose it is.
    pub owner: UserId,
    /// VM or container.
    pub resource_type: ResourceType,
    /// Its size.
    pub size: Size,
    /// Its tier.
    pub cpu_tier: CpuTier,
    /// Its GPU.
    pub gpu_model: Option<String>,
    /// Whether it has a web page.
    pub web: bool,
}

/// Where it goes and everything it holds there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// The claim to write.
    pub claim: Claim,
    /// Login host of the node.
    pub ssh_host: String,
}

impl Inventory {
    /// Chooses the node on which most is left afterwards, so that load spreads; ties go to the
    /// first name. Changes nothing: the claim counts once it is added.
    pub fn place(&self, ask: &Ask) -> Result<Placement, Shortfall> {
        let placed = self.index.best(
            |kind, most| {
                let enough = can_run(kind, ask)
                    && (ask.resource_type != ResourceType::Vm || kind.public)
                    && has_gpu(kind, ask)
                    && quantities(ask.size).iter().zip(most).all(|(n, m)| *n <= m);
                enough.then(|| headroom(kind.capacity, most, ask.size))
            },
            |number| {
                let node = self.nodes.get(number)?;
                let placement = self.holdings(node, ask).ok()?;
                let free = quantities(node.free());
                let left = headroom(quantities(node.setup.capacity), free, ask.size);
                Some((left, placement))
            },
        );
        placed.ok_or_else(|| self.nearest(ask))
    }

    /// What is short on the node with the least summed relative shortfall, where none will do.
    fn nearest(&self, ask: &Ask) -> Shortfall {
        let nearest = self.index.best(
            |kind, most| {
                can_run(kind, ask).then(|| -distance(&shortages(most, has_gpu(kind, ask), ask)))
            },
            |number| {
                let node = self.nodes.get(number)?;
                let gpu = ask.gpu_model.as_ref().and_then(|m| node.free_gpu(m));
                let mut fields = shortages(quantities(node.free()), gpu.is_some(), ask);
                // Named together with the sizes: who asks for less must not fail on these then.
                if let Err(used_up) = self.holdings(node, ask) {
                    fields.extend(used_up.into_iter().map(|field| (field, 1, 0)));
                }
                Some((-distance(&fields), Shortfall { fields }))
            },
        );
        nearest.unwrap_or_else(|| nowhere(ask))
    }

    /// Whether a stopped instance's compute can be claimed again on its node.
    pub fn reclaim(&self, claim: &Claim) -> Result<(), Shortfall> {
        let Some(node) = self.node(&claim.node) else {
            return Err(gone(claim.size));
        };
        let free = node.free();
        let mut fields = Vec::new();
        short("n_vcpus", claim.size.n_vcpus, free.n_vcpus, &mut fields);
        short("mem_gib", claim.size.mem_gib, free.mem_gib, &mut fields);
        let gpus_free = claim
            .gpus
            .iter()
            .filter(|gpu| !node.gpus_used.contains(&gpu.device))
            .count();
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        short(
            "n_gpus",
            count(claim.gpus.len()),
            count(gpus_free),
            &mut fields,
        );
        into_result(fields)
    }

    /// Whether an instance can grow from what it claims to a new size on its node. Compute counts
    /// only if it is claimed.
    pub fn grow(&self, claim: &Claim, to: Size) -> Result<(), Shortfall> {
        let Some(node) = self.node(&claim.node) else {
            return Err(gone(to));
        };
        let (free, held) = (node.free(), claim.size);
        let mut fields = Vec::new();
        if claim.compute {
            if to.n_vcpus > held.n_vcpus {
                let most = free.n_vcpus.saturating_add(held.n_vcpus);
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

    /// Ports, addresses and devices for an instance on a node; the fields that have run out if some
    /// have, but for GPUs, which count among the [`shortages`].
    pub(super) fn holdings(
        &self,
        node: &NodeState,
        ask: &Ask,
    ) -> Result<Placement, Vec<&'static str>> {
        let setup = &node.setup;
        let vm = ask.resource_type == ResourceType::Vm;
        let ssh = self.ssh.get(&setup.ssh_host);
        let ssh_port = ssh.and_then(super::ports::PortPool::free);
        let lan = node.lan.free(ask.owner);
        let web_port = if ask.web { self.web.free() } else { None };
        let public_ipv4 = if vm { node.public.free() } else { None };
        let used_up: Vec<_> = [
            ("wan_ssh_port", ssh_port.is_none()),
            ("lan_ipv4", lan.is_none()),
            ("webapp_url", ask.web && web_port.is_none()),
            ("public_ipv4", vm && public_ipv4.is_none()),
        ]
        .into_iter()
        .filter_map(|(field, out)| out.then_some(field))
        .collect();
        let model = ask.gpu_model.as_ref();
        let gpu: Option<GpuDevice> = model.and_then(|model| node.free_gpu(model).cloned());
        let (Some(ssh_port), Some((lan_subnet, lan_ipv4)), true) =
            (ssh_port, lan, used_up.is_empty())
        else {
            return Err(used_up);
        };
        Ok(Placement {
            claim: Claim {
                node: setup.id.clone(),
                owner: ask.owner,
                compute: true,
                size: ask.size,
                gpus: gpu.into_iter().collect(),
                ssh_port,
                web_port,
                lan_subnet,
                lan_ipv4,
                public_ipv4,
            },
            ssh_host: setup.ssh_host.clone(),
        })
    }
}

/// Whether nodes of a kind take such an instance at all, however much is free.
fn can_run(kind: &Kind, ask: &Ask) -> bool {
    kind.tiers.contains(&ask.cpu_tier)
        && match ask.resource_type {
            ResourceType::Vm => kind.vms,
            ResourceType::Container => kind.containers,
        }
}

fn has_gpu(kind: &Kind, ask: &Ask) -> bool {
    let mut asked = ask.gpu_model.iter();
    asked.all(|model| kind.gpus.contains(model))
}

type Field = (&'static str, u64, u64);

/// What is short where so much is free, and a GPU of the model or not.
fn shortages(free: Free, has_gpu: bool, ask: &Ask) -> Vec<Field> {
    let mut fields = Vec::new();
    let names = ["n_vcpus", "mem_gib", "disk_size_gib"];
    for ((name, asked), free) in names.into_iter().zip(quantities(ask.size)).zip(free) {
        short(name, asked, free, &mut fields);
    }
    if ask.gpu_model.is_some() {
        short("n_gpus", 1, u32::from(has_gpu), &mut fields);
    }
    fields
}

fn short(field: &'static str, requested: u32, available: u32, fields: &mut Vec<Field>) {
    if requested > available {
        fields.push((field, u64::from(requested), u64::from(available)));
    }
}

fn into_result(fields: Vec<Field>) -> Result<(), Shortfall> {
    if fields.is_empty() {
        Ok(())
    } else {
        Err(Shortfall { fields })
    }
}

/// The least share of any quantity that is left after placing. More, or the same, where more is free.
pub(super) fn headroom(capacity: Free, free: Free, size: Size) -> f64 {
    let asked = quantities(size);
    let quantities = capacity.into_iter().zip(free).zip(asked);
    quantities
        .map(|((total, free), asked)| {
            f64::from(free.saturating_sub(asked)) / f64::from(total.max(1))
        })
        .fold(f64::INFINITY, f64::min)
}

/// How far away what was asked for is: the relative shortfalls, summed.
#[expect(
    clippy::cast_precision_loss,
    reason = "a ratio of small integers, for comparison only"
)]
fn distance(fields: &[Field]) -> f64 {
    fields
        .iter()
        .map(|(_, requested, available)| {
            (requested - available) as f64 / (*requested).max(1) as f64
        })
        .sum()
}

/// No node takes such instances: nothing is available of what they are made of.
fn nowhere(ask: &Ask) -> Shortfall {
    if ask.resource_type == ResourceType::Vm {
        return Shortfall {
            fields: vec![("public_ipv4", 1, 0)],
        };
    }
    gone(ask.size)
}

fn gone(size: Size) -> Shortfall {
    Shortfall {
        fields: vec![
            ("n_vcpus", u64::from(size.n_vcpus), 0),
            ("mem_gib", u64::from(size.mem_gib), 0),
        ],
    }
}

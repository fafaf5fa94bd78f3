//! The choice of another node for an existing instance.

#[cfg(test)]
mod tests;

use super::inventory::Inventory;
use super::node::PlacementNode;
use super::ports::PortPool;
use super::scheduler::{PlacementRequest, can_run, headroom};
use crate::capacity::{Claim, GpuDevice, Size};
use crate::ids::NodeId;

/// An existing instance that is to move.
#[derive(Debug, Clone)]
pub struct MoveRequest<'a> {
    /// Its requirements.
    pub placement: PlacementRequest,
    /// Its present claim.
    pub claim: &'a Claim,
    /// Its present login host.
    pub ssh_host: &'a str,
    /// Whether it needs its compute at once.
    pub run: bool,
}

/// A chosen node, and the claim to reserve there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovePlace {
    pub claim: Claim,
    /// Login host of the node.
    pub ssh_host: String,
    /// The SSH port stays.
    pub keeps_ssh_port: bool,
}

impl Inventory {
    /// Chooses the node with the most headroom afterwards among those that `allowed` permits. The
    /// instance must be able to run there, and needs room for its disk only, unless it is to run at once.
    pub fn place_move(
        &self,
        request: &MoveRequest<'_>,
        allowed: impl Fn(&NodeId) -> bool,
    ) -> Option<MovePlace> {
        let (size, from) = (request.placement.size, &request.claim.node);
        let needed = if request.run {
            size
        } else {
            Size {
                n_vcpus: 0,
                mem_gib: 0,
                ..size
            }
        };
        let mut best: Option<(f64, MovePlace)> = None;
        for node in &self.nodes {
            let total = node.setup.capacity;
            let fits = size.n_vcpus <= total.n_vcpus && size.mem_gib <= total.mem_gib;
            let id = &node.setup.id;
            if id == from || !fits || !allowed(id) || !can_run(node, &request.placement) {
                continue;
            }
            let Some(left) = headroom(node, needed) else {
                continue;
            };
            if best.as_ref().is_none_or(|(most, _)| left > *most)
                && let Some(place) = self.move_to(node, request)
            {
                best = Some((left, place));
            }
        }
        best.map(|(_, place)| place)
    }

    /// The claim on a node; `None` if a GPU, a port or an address is missing.
    fn move_to(&self, node: &PlacementNode, request: &MoveRequest<'_>) -> Option<MovePlace> {
        let (claim, ssh_host) = (request.claim, &node.setup.ssh_host);
        let ports = self.ssh.get(ssh_host);
        let is_out = ports.is_some_and(|ports| ports.is_out(claim.ssh_port));
        let keeps_ssh_port = ssh_host == request.ssh_host && !is_out;
        let ssh_port = if keeps_ssh_port {
            claim.ssh_port
        } else {
            ports.and_then(PortPool::free)?
        };
        let lan = self.lan(node)?;
        let in_pool = self
            .node(&claim.node)
            .is_some_and(|from| from.lan == node.lan);
        let (lan_subnet, lan_ipv4) = if in_pool && lan.keeps(claim.lan_subnet, claim.lan_ipv4) {
            (claim.lan_subnet, claim.lan_ipv4)
        } else {
            lan.free(claim.owner)?
        };
        let public_ipv4 = match claim.public_ipv4 {
            Some(_) => Some(node.public.free()?),
            None => None,
        };
        let gpus = match &request.placement.gpu_model {
            Some(model) => vec![gpu(node, model, request.run)?.clone()],
            None => Vec::new(),
        };
        Some(MovePlace {
            claim: Claim {
                node: node.setup.id.clone(),
                compute: request.run,
                size: request.placement.size,
                gpus,
                ssh_port,
                lan_subnet,
                lan_ipv4,
                public_ipv4,
                ..claim.clone()
            },
            ssh_host: ssh_host.clone(),
            keeps_ssh_port,
        })
    }
}

/// A GPU of the model, free if possible; one in use is enough for an instance that does not run.
fn gpu<'a>(node: &'a PlacementNode, model: &str, run: bool) -> Option<&'a GpuDevice> {
    let any = || {
        let mut gpus = node.setup.gpus.iter();
        gpus.find(|gpu| gpu.model == model && node.supports.gpus && !run)
    };
    node.free_gpu(model).or_else(any)
}

//! Allocations that something outside Wharf holds. They are kept out of later placements for a while.

use super::inventory::Inventory;
use super::scheduler::{Placement, PlacementRequest};
use crate::capacity::Claim;
use crate::driver::ReportedShortage;
use crate::ids::NodeId;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::Ipv4Addr;

/// A thing that Wharf allocates from its own books, and that something else can hold on the node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Allocation {
    SshPort(u16),
    WebPort(u16),
    /// An address in the owner's subnet.
    LanAddress(u32, Ipv4Addr),
    /// The owner's subnet, with an address in it.
    LanSubnet(u32, Ipv4Addr),
    PublicAddress(Ipv4Addr),
    /// A GPU by its name in the driver.
    Gpu(String),
}

impl fmt::Display for Allocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SshPort(port) => write!(f, "SSH port {port}"),
            Self::WebPort(port) => write!(f, "web port {port}"),
            Self::LanAddress(_, address) => write!(f, "private address {address}"),
            Self::LanSubnet(_, address) => write!(f, "the network of {address}"),
            Self::PublicAddress(address) => write!(f, "public address {address}"),
            Self::Gpu(device) => write!(f, "GPU {device}"),
        }
    }
}

impl Allocation {
    /// Returns the allocations of a claim that a driver reports as held by something else; `None` if the
    /// report is about quantities.
    #[must_use]
    pub fn reported(shortages: &[ReportedShortage], claim: &Claim) -> Option<Vec<Self>> {
        let mut is_about = false;
        let mut lost = Vec::new();
        for shortage in shortages {
            let port = u16::try_from(shortage.requested).ok();
            let (subnet, address) = (claim.lan_subnet, claim.lan_ipv4);
            match shortage.field.as_str() {
                "node_port" if port == Some(claim.ssh_port) => {
                    lost.push(Self::SshPort(claim.ssh_port));
                }
                "node_port" => {
                    let web = claim.web_port.filter(|web| Some(*web) == port);
                    lost.extend(web.map(Self::WebPort));
                }
                "lan_ipv4" => lost.push(Self::LanAddress(subnet, address)),
                "lan_subnet" => lost.push(Self::LanSubnet(subnet, address)),
                "public_ipv4" => lost.extend(claim.public_ipv4.map(Self::PublicAddress)),
                "n_gpus" => {
                    let devices = claim.gpus.iter().map(|gpu| gpu.device.clone());
                    lost.extend(devices.map(Self::Gpu));
                }
                _ => return None,
            }
            is_about = true;
        }
        is_about.then_some(lost)
    }
}

/// An allocation that is kept out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeptOut {
    pub node: NodeId,
    pub what: Allocation,
    pub until: Timestamp,
}

impl fmt::Display for KeptOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} until {}", self.what, self.until.to_rfc3339())
    }
}

impl Inventory {
    /// Keeps an allocation out of placements until a time.
    pub fn keep_out(&mut self, node: &NodeId, what: Allocation, until: Timestamp) {
        self.set_out(node, &what, true);
        self.kept_out
            .retain(|kept| kept.node != *node || kept.what != what);
        self.kept_out.push(KeptOut {
            node: node.clone(),
            what,
            until,
        });
    }

    /// Offers allocations again whose time is over.
    pub fn offer_again(&mut self, now: Timestamp) {
        let kept = std::mem::take(&mut self.kept_out);
        let (over, kept): (Vec<_>, Vec<_>) = kept.into_iter().partition(|kept| kept.until <= now);
        for kept in over {
            self.set_out(&kept.node, &kept.what, false);
        }
        self.kept_out = kept;
        // Nodes may share a pool.
        for kept in self.kept_out.clone() {
            self.set_out(&kept.node, &kept.what, true);
        }
    }

    /// Returns the allocations that are kept out.
    #[must_use]
    pub fn kept_out(&self) -> &[KeptOut] {
        &self.kept_out
    }

    fn set_out(&mut self, id: &NodeId, what: &Allocation, out: bool) {
        let Some(node) = self.node_mut(id) else {
            return;
        };
        let (lan, host) = (node.lan, node.setup.ssh_host.clone());
        match what {
            Allocation::PublicAddress(address) => node.public.keep_out(*address, out),
            Allocation::Gpu(device) if out => {
                node.gpus_out.insert(device.clone());
            }
            Allocation::Gpu(device) => {
                node.gpus_out.remove(device);
            }
            Allocation::SshPort(port) => {
                if let Some(pool) = self.ssh.get_mut(&host) {
                    pool.keep_out(*port, out);
                }
            }
            Allocation::WebPort(port) => self.web.keep_out(*port, out),
            Allocation::LanAddress(subnet, address) => {
                if let Some(lan) = self.lans.get_mut(lan) {
                    lan.keep_out(*subnet, Some(*address), out);
                }
            }
            Allocation::LanSubnet(subnet, _) => {
                if let Some(lan) = self.lans.get_mut(lan) {
                    lan.keep_out(*subnet, None, out);
                }
            }
        }
    }

    /// Returns a placement of an instance without the allocations that it lost: on its node if possible,
    /// or else on another one. The claim still counts meanwhile.
    #[must_use]
    pub fn replacement(
        &self,
        claim: &Claim,
        request: &PlacementRequest,
        lost: &[Allocation],
    ) -> Option<Placement> {
        self.on_its_node(claim, request, lost)
            .or_else(|| self.place(request).ok())
    }

    fn on_its_node(
        &self,
        claim: &Claim,
        request: &PlacementRequest,
        lost: &[Allocation],
    ) -> Option<Placement> {
        let node = self.node(&claim.node)?;
        let mut claim = claim.clone();
        for what in lost {
            match what {
                Allocation::SshPort(_) => {
                    claim.ssh_port = self.ssh.get(&node.setup.ssh_host)?.free()?;
                }
                Allocation::WebPort(_) => claim.web_port = Some(self.web.free()?),
                Allocation::LanAddress(..) | Allocation::LanSubnet(..) => {
                    let lan = self.lan(node)?;
                    (claim.lan_subnet, claim.lan_ipv4) = lan.free(claim.owner)?;
                }
                Allocation::PublicAddress(_) => {
                    claim.public_ipv4 = Some(node.public.free()?);
                }
                Allocation::Gpu(_) => {
                    let gpu = node.free_gpu(request.gpu_model.as_ref()?)?;
                    claim.gpus = vec![gpu.clone()];
                }
            }
        }
        Some(Placement {
            claim,
            ssh_host: node.setup.ssh_host.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Allocation, ReportedShortage};
    use crate::capacity::{Claim, CpuTier, GpuDevice, Size};
    use crate::ids::{NodeId, UserId};
    use crate::placement::{Inventory, NodeSetup, PlacementRequest, Pools};
    use crate::time::Timestamp;

    fn gpu(n: u32) -> GpuDevice {
        GpuDevice {
            model: "L4".to_owned(),
            device: format!("L4#{n}"),
        }
    }

    fn placed() -> (Inventory, PlacementRequest, Claim) {
        let size = Size {
            n_vcpus: 1,
            mem_gib: 1,
            disk_size_gib: 10,
        };
        let setup = NodeSetup {
            id: NodeId("one".to_owned()),
            capacity: size,
            claimable_vcpus: 1,
            gpus: vec![gpu(0), gpu(1)],
            retired: false,
            cpu_tiers: CpuTier::ALL.to_vec(),
            ssh_host: "host".to_owned(),
            cluster: None,
            lan_cidr: "10.80.0.0/28".parse().unwrap(),
            lan_subnet_prefix: 29,
            public_ipv4: vec!["203.0.113.0/29".parse().unwrap()],
        };
        let pools = Pools {
            ssh: (2000, 2001),
            web: (3000, 3001),
        };
        let mut inventory = Inventory::new(vec![setup], pools);
        let request = PlacementRequest {
            owner: UserId(1),
            resource_type: crate::instance::ResourceType::Vm,
            size,
            cpu_tier: CpuTier::GeneralPurpose,
            gpu_model: Some("L4".to_owned()),
            web: true,
            flavor: "base".to_owned(),
            images: Vec::new(),
            nodes: None,
        };
        let claim = inventory.place(&request).unwrap().claim;
        inventory.add(&claim);
        (inventory, request, claim)
    }

    fn all(claim: &Claim) -> Vec<Allocation> {
        vec![
            Allocation::SshPort(claim.ssh_port),
            Allocation::WebPort(claim.web_port.unwrap()),
            Allocation::LanAddress(claim.lan_subnet, claim.lan_ipv4),
            Allocation::PublicAddress(claim.public_ipv4.unwrap()),
            Allocation::Gpu(claim.gpus[0].device.clone()),
        ]
    }

    #[test]
    fn an_instance_gets_other_allocations_on_its_full_node() {
        let (mut inventory, request, claim) = placed();
        let lost = all(&claim);
        for what in &lost {
            inventory.keep_out(&claim.node, what.clone(), Timestamp(10));
        }
        let other = inventory
            .replacement(&claim, &request, &lost)
            .unwrap()
            .claim;
        for (old, new) in lost.iter().zip(all(&other)) {
            assert_ne!(*old, new);
        }
        assert_eq!(
            (other.size, other.lan_subnet),
            (claim.size, claim.lan_subnet)
        );
        let subnet = Allocation::LanSubnet(claim.lan_subnet, claim.lan_ipv4);
        inventory.keep_out(&claim.node, subnet.clone(), Timestamp(10));
        let other = inventory.replacement(&claim, &request, &[subnet]).unwrap();
        assert_ne!(other.claim.lan_subnet, claim.lan_subnet);
    }

    #[test]
    fn what_is_kept_out_is_offered_again_after_its_time() {
        let (mut inventory, request, claim) = placed();
        inventory.remove(&claim);
        for what in all(&claim) {
            inventory.keep_out(&claim.node, what, Timestamp(10));
        }
        let second = inventory.place(&request).unwrap().claim;
        for what in all(&second) {
            inventory.keep_out(&claim.node, what, Timestamp(20));
        }
        let short = inventory.place(&request).unwrap_err();
        let fields: Vec<_> = short.fields.iter().map(|field| field.0).collect();
        assert_eq!(fields, ["n_gpus", "wan_ssh_port", "webapp_url"]);
        inventory.offer_again(Timestamp(9));
        assert!(inventory.place(&request).is_err());
        inventory.offer_again(Timestamp(10));
        let third = inventory.place(&request).unwrap().claim;
        assert_eq!((third.ssh_port, &third.gpus), (claim.ssh_port, &claim.gpus));
        assert_eq!(inventory.kept_out().len(), all(&second).len());
    }

    #[test]
    fn a_report_names_only_what_the_claim_has() {
        let (_, _, claim) = placed();
        let short = |field: &str, requested: u64| ReportedShortage {
            field: field.to_owned(),
            requested,
            available: 0,
        };
        let reported = |shortages: &[ReportedShortage]| Allocation::reported(shortages, &claim);
        let ports = [short("node_port", 2000), short("node_port", 22)];
        assert_eq!(reported(&ports), Some(vec![Allocation::SshPort(2000)]));
        assert_eq!(reported(&[short("node_port", 22)]), Some(Vec::new()));
        assert_eq!(reported(&[short("n_vcpus", 1)]), None);
        assert_eq!(reported(&[short("n_gpus", 1), short("n_vcpus", 1)]), None);
    }
}

//! Moves keep the sums: after any sequence, the inventory is that of the claims alone.

use super::MoveRequest;
use crate::capacity::{Claim, CpuTier, GpuDevice, Size};
use crate::ids::{NodeId, UserId};
use crate::instance::ResourceType;
use crate::placement::{Cluster, Inventory, NodeSetup, PlacementRequest, Pools};
use proptest::prelude::*;

const OWNER: UserId = UserId(1);

fn setup(name: &str, host: &str, n: u8, cluster: Option<&str>) -> NodeSetup {
    NodeSetup {
        id: NodeId(name.to_owned()),
        capacity: Size {
            n_vcpus: 8,
            mem_gib: 16,
            disk_size_gib: 200,
        },
        claimable_vcpus: 8,
        gpus: vec![GpuDevice {
            model: "A100".to_owned(),
            device: format!("{name}-gpu"),
        }],
        cpu_tiers: vec![CpuTier::GeneralPurpose],
        retired: false,
        ssh_host: host.to_owned(),
        cluster: cluster.map(|name| Cluster {
            name: name.to_owned(),
            driver: "d".to_owned(),
        }),
        lan_cidr: format!("10.{n}.0.0/16").parse().unwrap(),
        lan_subnet_prefix: 24,
        public_ipv4: vec![format!("203.0.{n}.0/29").parse().unwrap()],
    }
}

fn empty() -> Inventory {
    let pools = Pools {
        ssh: (20_000, 20_019),
        web: (30_000, 30_019),
    };
    // Two nodes share a login host, and two others a pool of private addresses.
    let setups = [
        setup("a", "h", 80, None),
        setup("b", "h", 81, Some("east")),
        setup("c", "other", 81, Some("east")),
    ];
    Inventory::new(setups.to_vec(), pools)
}

fn host(claim: &Claim) -> &'static str {
    match claim.node.0.as_str() {
        "c" => "other",
        _ => "h",
    }
}

fn request(vm: bool, gpu: bool, disk_size_gib: u32) -> PlacementRequest {
    PlacementRequest {
        owner: OWNER,
        resource_type: if vm {
            ResourceType::Vm
        } else {
            ResourceType::Container
        },
        size: Size {
            n_vcpus: 2,
            mem_gib: 2,
            disk_size_gib,
        },
        cpu_tier: CpuTier::GeneralPurpose,
        gpu_model: (gpu && !vm).then(|| "A100".to_owned()),
        flavor: "base".to_owned(),
        web: true,
        images: Vec::new(),
        nodes: None,
    }
}

/// Everything that a decision may depend on.
fn visible(inventory: &Inventory) -> impl PartialEq + std::fmt::Debug {
    let nodes = inventory.nodes.iter();
    let free: Vec<_> = nodes
        .map(|node| (node.public.free(), node.gpus_used.clone()))
        .collect();
    let lans: Vec<_> = inventory.lans.iter().map(|lan| lan.free(OWNER)).collect();
    (inventory.usage(), inventory.used(OWNER), free, lans)
}

proptest! {
    #[test]
    fn any_sequence_of_moves_keeps_the_sums(
        steps in prop::collection::vec((0..4_u8, any::<bool>(), any::<bool>(), 0..6_usize), 1..40),
    ) {
        let mut inventory = empty();
        let mut claims: Vec<(PlacementRequest, Claim)> = Vec::new();
        for (kind, first, second, n) in steps {
            let Some((wanted, claim)) = claims.get(n % claims.len().max(1)).cloned() else {
                let wanted = request(first, second, 20);
                if let Ok(placed) = inventory.place(&wanted) {
                    inventory.add(&placed.claim);
                    claims.push((wanted, placed.claim));
                }
                continue;
            };
            if kind == 0 {
                let wanted = request(first, second, 40);
                if let Ok(placed) = inventory.place(&wanted) {
                    inventory.add(&placed.claim);
                    claims.push((wanted, placed.claim));
                }
                continue;
            }
            let run = first;
            let from = MoveRequest {
                placement: wanted.clone(),
                claim: &claim,
                ssh_host: host(&claim),
                run,
            };
            let Some(place) = inventory.place_move(&from, |_| true) else {
                continue;
            };
            prop_assert_ne!(&place.claim.node, &claim.node);
            let shared = claim.node.0 != "a" && place.claim.node.0 != "a";
            let is_kept = place.claim.lan_ipv4 == claim.lan_ipv4;
            prop_assert_eq!(is_kept, shared);
            prop_assert_eq!(place.claim.web_port, claim.web_port);
            prop_assert_eq!(place.keeps_ssh_port, host(&claim) == place.ssh_host);
            prop_assert_eq!(place.keeps_ssh_port, place.claim.ssh_port == claim.ssh_port
                && host(&claim) == place.ssh_host);
            let used = inventory.used(OWNER);
            inventory.reserve(&place.claim, place.keeps_ssh_port, true);
            // An owner pays and counts once.
            prop_assert_eq!(inventory.used(OWNER), used);
            inventory.reserve(&place.claim, place.keeps_ssh_port, false);
            if second {
                inventory.remove(&claim);
                inventory.add(&place.claim);
                let at = n % claims.len();
                claims[at] = (wanted, place.claim);
            }
            let mut fresh = empty();
            claims.iter().for_each(|(_, claim)| fresh.add(claim));
            prop_assert_eq!(visible(&inventory), visible(&fresh));
        }
    }
}

#[test]
fn only_an_instance_that_runs_needs_room_for_its_compute() {
    let mut inventory = empty();
    let claim = inventory.place(&request(false, false, 20)).unwrap().claim;
    inventory.add(&claim);
    for other in ["b", "c"] {
        let full = Claim {
            node: NodeId(other.to_owned()),
            size: Size {
                n_vcpus: 8,
                mem_gib: 1,
                disk_size_gib: 10,
            },
            ..inventory.place(&request(false, false, 20)).unwrap().claim
        };
        inventory.add(&full);
    }
    let to = |run, allowed: &'static str| {
        let from = MoveRequest {
            placement: request(false, false, 20),
            claim: &claim,
            ssh_host: "h",
            run,
        };
        inventory.place_move(&from, |node| node.0 == allowed)
    };
    assert_eq!(to(true, "b"), None);
    let place = to(false, "b").unwrap();
    assert!(!place.claim.compute && place.keeps_ssh_port);
    assert!(!to(false, "c").unwrap().keeps_ssh_port);
    assert_eq!(to(false, "nowhere"), None);
}

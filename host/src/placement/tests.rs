//! The scheduler decides as one that looks at every node would, whatever has happened before.

use super::node::NodeState;
use super::{Ask, Inventory, NodeSetup, Placement, Pools, Supports};
use crate::domain::capacity::{Claim, CpuTier, GpuDevice, Size};
use crate::domain::error::Shortfall;
use crate::domain::ids::{NodeId, UserId};
use crate::domain::instance::ResourceType;
use proptest::prelude::*;

/// One after the other: the node with the most left, of equals the first; where none will do, the
/// fields of the one with the least summed relative shortfall, of equals the first.
fn one_by_one(inventory: &Inventory, ask: &Ask) -> Result<Placement, Option<Shortfall>> {
    let mut best: Option<(f64, Placement)> = None;
    let mut nearest: Option<(f64, Shortfall)> = None;
    for node in inventory.nodes.iter().filter(|node| takes(node, ask)) {
        let (free, total) = (node.free(), node.setup.capacity);
        let quantities = [
            ("n_vcpus", ask.size.n_vcpus, free.n_vcpus, total.n_vcpus),
            ("mem_gib", ask.size.mem_gib, free.mem_gib, total.mem_gib),
            (
                "disk_size_gib",
                ask.size.disk_size_gib,
                free.disk_size_gib,
                total.disk_size_gib,
            ),
        ];
        let mut fields: Vec<(&str, u64, u64)> = Vec::new();
        for (name, asked, free, _) in quantities {
            if asked > free {
                fields.push((name, asked.into(), free.into()));
            }
        }
        let model = ask.gpu_model.as_ref();
        if model.is_some_and(|model| node.free_gpu(model).is_none()) {
            fields.push(("n_gpus", 1, 0));
        }
        match inventory.holdings(node, ask) {
            Ok(placement) if fields.is_empty() => {
                let left = quantities.map(|(_, asked, free, total)| {
                    f64::from(free - asked) / f64::from(total.max(1))
                });
                let left = left.into_iter().fold(f64::INFINITY, f64::min);
                if best.as_ref().is_none_or(|(most, _)| left > *most) {
                    best = Some((left, placement));
                }
                continue;
            }
            Ok(_) => {}
            Err(used_up) => fields.extend(used_up.into_iter().map(|name| (name, 1, 0))),
        }
        let relative = |(_, asked, free): &(&str, u64, u64)| (asked - free) as f64 / *asked as f64;
        let distance: f64 = fields.iter().map(relative).sum();
        if nearest.as_ref().is_none_or(|(least, _)| distance < *least) {
            nearest = Some((distance, Shortfall { fields }));
        }
    }
    match best {
        Some((_, placement)) => Ok(placement),
        None => Err(nearest.map(|(_, shortfall)| shortfall)),
    }
}

fn takes(node: &NodeState, ask: &Ask) -> bool {
    let kind = match ask.resource_type {
        ResourceType::Vm => node.supports.vms,
        ResourceType::Container => node.supports.containers,
    };
    kind && node.setup.cpu_tiers.contains(&ask.cpu_tier)
}

#[derive(Debug, Clone)]
enum Step {
    Place(Ask),
    Release(usize),
    /// Stopped: its compute counts no longer.
    Stop(usize),
    Supports(usize, [bool; 3]),
}

fn size() -> impl Strategy<Value = Size> {
    (1..6_u32, 1..9_u32, 1..30_u32).prop_map(|(n_vcpus, mem_gib, disk_size_gib)| Size {
        n_vcpus,
        mem_gib,
        disk_size_gib,
    })
}

fn tier() -> impl Strategy<Value = CpuTier> {
    prop_oneof![
        4 => Just(CpuTier::GeneralPurpose),
        1 => Just(CpuTier::HighPerformance),
    ]
}

/// Few kinds, so that there are equals, and few addresses and ports, so that they run out.
fn node() -> impl Strategy<Value = NodeSetup> {
    let capacity = prop_oneof![Just((16, 64, 100)), Just((7, 31, 999)), Just((64, 9, 40))];
    let tiers = prop_oneof![
        3 => Just(vec![CpuTier::GeneralPurpose, CpuTier::HighPerformance]),
        1 => Just(vec![CpuTier::GeneralPurpose]),
    ];
    let public = prop_oneof![Just(vec![]), Just(vec!["203.0.113.0/30"])];
    (capacity, 0..3_u32, tiers, 0..3_u32, public, 28..=30_u8).prop_map(
        |((n_vcpus, mem_gib, disk_size_gib), gpus, cpu_tiers, host, public, prefix)| NodeSetup {
            id: NodeId(String::new()),
            capacity: Size {
                n_vcpus,
                mem_gib,
                disk_size_gib,
            },
            gpus: (0..gpus)
                .map(|n| GpuDevice {
                    model: ["H100", "L4"][n as usize % 2].to_owned(),
                    device: n.to_string(),
                })
                .collect(),
            cpu_tiers,
            ssh_host: format!("h{host}"),
            lan_cidr: "10.80.0.0/26".parse().unwrap(),
            lan_subnet_prefix: prefix,
            public_ipv4: public.into_iter().map(|n| n.parse().unwrap()).collect(),
        },
    )
}

fn ask() -> impl Strategy<Value = Ask> {
    let gpu = prop_oneof![4 => Just(None), 1 => Just(Some("H100")), 1 => Just(Some("L4"))];
    (0..4_u64, any::<bool>(), size(), tier(), gpu, any::<bool>()).prop_map(
        |(owner, vm, size, cpu_tier, gpu_model, web)| Ask {
            owner: UserId(owner),
            resource_type: if vm {
                ResourceType::Vm
            } else {
                ResourceType::Container
            },
            size,
            cpu_tier,
            gpu_model: gpu_model.map(str::to_owned),
            web: web && !vm,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => ask().prop_map(Step::Place),
        3 => any::<usize>().prop_map(Step::Release),
        2 => any::<usize>().prop_map(Step::Stop),
        1 => (any::<usize>(), any::<[bool; 3]>()).prop_map(|(n, s)| Step::Supports(n, s)),
    ]
}

fn inventory(nodes: Vec<NodeSetup>) -> Inventory {
    let named = |(n, node)| NodeSetup {
        id: NodeId(format!("n{n:04}")),
        ..node
    };
    let pools = Pools {
        ssh: (20_000, 20_039),
        web: (30_000, 30_019),
    };
    Inventory::new(nodes.into_iter().enumerate().map(named).collect(), pools)
}

proptest! {
    #[test]
    fn decides_as_a_look_at_every_node_would(
        nodes in prop::collection::vec(node(), 0..40),
        steps in prop::collection::vec(step(), 0..160),
    ) {
        let mut inventory = inventory(nodes);
        let mut claims: Vec<Claim> = Vec::new();
        for step in steps {
            match step {
                Step::Place(ask) => match (inventory.place(&ask), one_by_one(&inventory, &ask)) {
                    (Ok(placement), Ok(expected)) => {
                        prop_assert_eq!(&placement, &expected);
                        inventory.add(&placement.claim);
                        claims.push(placement.claim);
                    }
                    (Err(shortfall), Err(Some(expected))) => prop_assert_eq!(shortfall, expected),
                    (Err(_), Err(None)) => {}
                    other => prop_assert!(false, "{other:?}"),
                },
                Step::Release(n) if !claims.is_empty() => {
                    let claim = claims.swap_remove(n % claims.len());
                    inventory.remove(&claim);
                }
                Step::Stop(n) if !claims.is_empty() => {
                    let at = n % claims.len();
                    let stopped = Claim { compute: false, ..claims[at].clone() };
                    inventory.replace(&claims[at], &stopped);
                    claims[at] = stopped;
                }
                Step::Supports(n, [containers, vms, gpus]) if !inventory.nodes.is_empty() => {
                    let id = inventory.nodes[n % inventory.nodes.len()].setup.id.clone();
                    inventory.set_supports(&id, Supports { containers, vms, gpus });
                }
                _ => {}
            }
        }
        // What was reached step by step is what the claims add up to.
        let setups = inventory.nodes.iter().map(|node| node.setup.clone()).collect();
        let pools = Pools { ssh: (20_000, 20_039), web: (30_000, 30_019) };
        let mut derived = Inventory::new(setups, pools);
        for node in &inventory.nodes {
            derived.set_supports(&node.setup.id, node.supports);
        }
        let all = derived.add_all(|add| {
            claims.iter().for_each(add);
            Ok::<_, ()>(())
        });
        prop_assert_eq!(all, Ok(()));
        for (derived, node) in derived.nodes.iter().zip(&inventory.nodes) {
            prop_assert_eq!((derived.used, derived.free()), (node.used, node.free()));
        }
    }
}

/// Counts what is looked at: far fewer nodes than there are, and hardly more of ten times as many.
#[test]
fn looks_at_few_nodes() {
    let looks = |count: u32| {
        let setups = (0..count).map(|n| NodeSetup {
            id: NodeId(format!("n{n:06}")),
            capacity: Size {
                n_vcpus: 64,
                mem_gib: 256,
                disk_size_gib: 2_000,
            },
            gpus: Vec::new(),
            cpu_tiers: vec![CpuTier::GeneralPurpose],
            ssh_host: format!("h{n}"),
            lan_cidr: "10.80.0.0/16".parse().unwrap(),
            lan_subnet_prefix: 24,
            public_ipv4: Vec::new(),
        });
        let pools = Pools {
            ssh: (20_000, 29_999),
            web: (30_000, 32_000),
        };
        let mut inventory = Inventory::new(setups.collect(), pools);
        let mut random = 1_u32;
        let mut next = |below: u32| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (random >> 8) % below + 1
        };
        let mut most = 0;
        for n in 0..count * 3 {
            let size = Size {
                n_vcpus: next(8),
                mem_gib: next(40),
                disk_size_gib: next(300),
            };
            let asked = std::cell::Cell::new(0);
            let found = inventory.index.best(
                |kind, free| {
                    asked.set(asked.get() + 1);
                    let fits = free[0] >= size.n_vcpus && free[1] >= size.mem_gib;
                    (fits && free[2] >= size.disk_size_gib)
                        .then(|| super::scheduler::headroom(kind.capacity, free, size))
                },
                |number| {
                    let free = super::index::quantities(inventory.nodes[number].free());
                    let total = super::index::quantities(inventory.nodes[number].setup.capacity);
                    Some((super::scheduler::headroom(total, free, size), number))
                },
            );
            most = most.max(asked.get());
            let Some(number) = found else { continue };
            let claim = Claim {
                node: inventory.nodes[number].setup.id.clone(),
                owner: UserId(1),
                compute: true,
                size,
                gpus: Vec::new(),
                ssh_port: 20_000 + (n % 1_000) as u16,
                web_port: None,
                lan_subnet: 0,
                lan_ipv4: std::net::Ipv4Addr::from(0x0a50_0002 + n % 200),
                public_ipv4: None,
            };
            inventory.add(&claim);
        }
        most
    };
    let (few, many) = (looks(300), looks(3_000));
    println!("bounds computed at most: {few} of 300 nodes, {many} of 3,000");
    assert!(many < 1_000 && many < few * 5, "{few} {many}");
}

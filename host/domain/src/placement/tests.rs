//! The scheduler against its plain definition, after any sequence of changes.

mod cluster;

use super::node::{NodeImages, PlacementNode};
use super::{Cluster, Inventory, NodeSetup, Placement, PlacementRequest, Pools, Supports};
use crate::capacity::{Claim, CpuTier, GpuDevice, Size};
use crate::error::Shortfall;
use crate::ids::{NodeId, UserId, VolumeId};
use crate::instance::ResourceType;
use crate::money::Rate;
use crate::name::Name;
use crate::time::Timestamp;
use crate::volume::{OfVolume, Volume};
use proptest::prelude::*;

/// The definition: the first of the nodes with the most headroom. Where no node fits, the shortfall of
/// the first of the nodes with the least distance.
fn defined(
    inventory: &Inventory,
    request: &PlacementRequest,
) -> Result<Placement, Option<Shortfall>> {
    let mut best: Option<(f64, Placement)> = None;
    let mut nearest: Option<(f64, Shortfall)> = None;
    for node in inventory.nodes.iter().filter(|node| takes(node, request)) {
        let (free, mut total) = (node.free(), node.setup.capacity);
        let most = total.n_vcpus;
        total.n_vcpus = node.setup.claimable_vcpus;
        let quantities = [
            ("n_vcpus", request.size.n_vcpus, free.n_vcpus, total.n_vcpus),
            ("mem_gib", request.size.mem_gib, free.mem_gib, total.mem_gib),
            (
                "disk_size_gib",
                request.size.disk_size_gib,
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
        let model = request.gpu_model.as_ref();
        if model.is_some_and(|model| node.free_gpu(model).is_none()) {
            fields.push(("n_gpus", 1, 0));
        }
        fields.extend(inventory.used_up(node, request).map(|name| (name, 1, 0)));
        if fields.is_empty() {
            assert!(request.size.n_vcpus <= most, "more than the node has");
            let unclaimed = node.unclaimed();
            assert_eq!(free.n_vcpus, unclaimed.n_vcpus.min(most));
            let left = quantities.map(|(name, asked, free, total)| {
                let free = if name == "n_vcpus" {
                    unclaimed.n_vcpus
                } else {
                    free
                };
                f64::from(free - asked) / f64::from(total.max(1))
            });
            let left = left.into_iter().fold(f64::INFINITY, f64::min);
            if best.as_ref().is_none_or(|(most, _)| left > *most) {
                best = Some((left, inventory.placement(node, request).unwrap()));
            }
            continue;
        }
        let relative = |(_, asked, free): &(&str, u64, u64)| (asked - free) as f64 / *asked as f64;
        let distance: f64 = fields.iter().map(relative).sum();
        if nearest.as_ref().is_none_or(|(least, _)| distance < *least) {
            nearest = Some((distance, Shortfall::from(fields)));
        }
    }
    match best {
        Some((_, placement)) => Ok(placement),
        None => Err(nearest.map(|(_, shortfall)| shortfall)),
    }
}

fn takes(node: &PlacementNode, request: &PlacementRequest) -> bool {
    let kind = match request.resource_type {
        ResourceType::Vm => node.supports.vms,
        ResourceType::Container => node.supports.containers,
    };
    kind && !node.setup.retired && node.setup.cpu_tiers.contains(&request.cpu_tier)
}

#[derive(Debug, Clone)]
enum Step {
    Place(PlacementRequest),
    Release(usize),
    /// Stops an instance: its compute no longer counts.
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

/// Few capacities make ties likely; few addresses and ports run out.
fn node() -> impl Strategy<Value = NodeSetup> {
    let capacity = prop_oneof![Just((16, 64, 100)), Just((7, 31, 999)), Just((64, 9, 40))];
    let tiers = prop_oneof![
        3 => Just(vec![CpuTier::GeneralPurpose, CpuTier::HighPerformance]),
        1 => Just(vec![CpuTier::GeneralPurpose]),
    ];
    let public = prop_oneof![Just(vec![]), Just(vec!["203.0.113.0/30"])];
    let retired = prop::bool::weighted(0.1);
    let cluster = prop_oneof![2 => Just(None), 1 => Just(Some("east"))];
    let others = (0..3_u32, public, 28..=30_u8, retired, 1..=3_u32, cluster);
    (capacity, 0..3_u32, tiers, others).prop_map(
        |(capacity, gpus, cpu_tiers, (host, public, prefix, retired, overcommit, cluster))| {
            NodeSetup {
                id: NodeId(String::new()),
                capacity: Size {
                    n_vcpus: capacity.0,
                    mem_gib: capacity.1,
                    disk_size_gib: capacity.2,
                },
                claimable_vcpus: capacity.0 * overcommit,
                gpus: (0..gpus)
                    .map(|n| GpuDevice {
                        model: ["H100", "L4"][n as usize % 2].to_owned(),
                        device: n.to_string(),
                    })
                    .collect(),
                cpu_tiers,
                retired,
                ssh_host: format!("h{host}"),
                cluster: cluster.map(cluster_of),
                lan_cidr: "10.80.0.0/26".parse().unwrap(),
                lan_subnet_prefix: prefix,
                public_ipv4: public.into_iter().map(|n| n.parse().unwrap()).collect(),
            }
        },
    )
}

fn request() -> impl Strategy<Value = PlacementRequest> {
    let gpu = prop_oneof![4 => Just(None), 1 => Just(Some("H100")), 1 => Just(Some("L4"))];
    (0..4_u64, any::<bool>(), size(), tier(), gpu, any::<bool>()).prop_map(
        |(owner, vm, size, cpu_tier, gpu_model, web)| PlacementRequest {
            owner: UserId(owner),
            resource_type: if vm {
                ResourceType::Vm
            } else {
                ResourceType::Container
            },
            size,
            cpu_tier,
            gpu_model: gpu_model.map(str::to_owned),
            flavor: "base".to_owned(),
            web: web && !vm,
            images: Vec::new(),
            nodes: None,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => request().prop_map(Step::Place),
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
    fn decides_as_defined(
        nodes in prop::collection::vec(node(), 0..40),
        steps in prop::collection::vec(step(), 0..160),
    ) {
        let mut inventory = inventory(nodes);
        let mut claims: Vec<Claim> = Vec::new();
        for step in steps {
            match step {
                Step::Place(request) => match (inventory.place(&request), defined(&inventory, &request)) {
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
                    inventory.set_supports(&id, Supports { containers, vms, gpus, volumes: true });
                }
                _ => {}
            }
        }
        // An inventory derived from the claims equals the one reached step by step.
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

fn cluster_of(name: &str) -> Cluster {
    Cluster {
        name: name.to_owned(),
        driver: "d".to_owned(),
    }
}

fn setup(name: &str, host: &str) -> NodeSetup {
    NodeSetup {
        id: NodeId(name.to_owned()),
        capacity: Size {
            n_vcpus: 64,
            mem_gib: 64,
            disk_size_gib: 640,
        },
        claimable_vcpus: 64,
        gpus: Vec::new(),
        cpu_tiers: vec![CpuTier::GeneralPurpose],
        retired: false,
        ssh_host: host.to_owned(),
        cluster: None,
        lan_cidr: "10.80.0.0/16".parse().unwrap(),
        lan_subnet_prefix: 24,
        public_ipv4: Vec::new(),
    }
}

#[test]
fn a_node_without_the_image_gets_no_instance() {
    let pools = Pools {
        ssh: (20_000, 20_009),
        web: (30_000, 30_009),
    };
    let mut inventory = Inventory::new(vec![setup("a", "h"), setup("b", "h")], pools);
    let request = PlacementRequest {
        owner: UserId(1),
        resource_type: ResourceType::Container,
        size: Size {
            n_vcpus: 1,
            mem_gib: 1,
            disk_size_gib: 10,
        },
        cpu_tier: CpuTier::GeneralPurpose,
        gpu_model: None,
        flavor: "base".to_owned(),
        web: false,
        images: vec!["tools".to_owned()],
        nodes: None,
    };
    let lacks = |image: &str| NodeImages {
        missing: [image.to_owned()].into(),
        ..NodeImages::default()
    };
    let place = |inventory: &Inventory| inventory.place(&request);
    let (a, b) = (NodeId("a".to_owned()), NodeId("b".to_owned()));
    assert_eq!(place(&inventory).unwrap().claim.node, a);
    inventory.set_images(&a, lacks("tools"));
    assert_eq!(place(&inventory).unwrap().claim.node, b);
    inventory.set_images(&b, lacks("tools"));
    let refused = place(&inventory).unwrap_err();
    assert_eq!(refused.no_image.as_deref(), Some("base"));
    assert_eq!(refused.fields, [("flavor", 1, 0)]);
    let lacks_image =
        |inventory: &Inventory| inventory.lacks_image(ResourceType::Container, &request.images);
    assert!(lacks_image(&inventory));
    inventory.set_images(&b, lacks("other"));
    assert_eq!(place(&inventory).unwrap().claim.node, b);
    inventory.set_drained(&a, true);
    inventory.set_drained(&b, true);
    assert!(place(&inventory).unwrap_err().no_image.is_none());
    assert!(!lacks_image(&inventory));
}

#[test]
fn ports_of_a_node_that_is_not_configured_stay_taken() {
    let pools = Pools {
        ssh: (20_000, 20_001),
        web: (30_000, 30_001),
    };
    let request = PlacementRequest {
        owner: UserId(1),
        resource_type: ResourceType::Container,
        size: Size {
            n_vcpus: 1,
            mem_gib: 1,
            disk_size_gib: 10,
        },
        cpu_tier: CpuTier::GeneralPurpose,
        gpu_model: None,
        flavor: "base".to_owned(),
        web: true,
        images: Vec::new(),
        nodes: None,
    };
    let gone = Inventory::new(vec![setup("gone", "h")], pools);
    let claim = gone.place(&request).unwrap().claim;
    let mut inventory = Inventory::new(vec![setup("new", "h")], pools);
    inventory.add(&claim);
    let placed = inventory.place(&request).unwrap().claim;
    assert_ne!(
        (placed.ssh_port, placed.web_port),
        (claim.ssh_port, claim.web_port)
    );
    assert_ne!(placed.ssh_port, claim.ssh_port);
    inventory.add(&placed);
    assert!(inventory.place(&request).is_err());
}

#[test]
fn overcommitted_vcpus_are_shared_and_one_instance_has_at_most_the_nodes() {
    let node = NodeSetup {
        id: NodeId("n".to_owned()),
        capacity: Size {
            n_vcpus: 2,
            mem_gib: 64,
            disk_size_gib: 640,
        },
        claimable_vcpus: 5,
        gpus: Vec::new(),
        cpu_tiers: vec![CpuTier::GeneralPurpose],
        retired: false,
        ssh_host: "h".to_owned(),
        cluster: None,
        lan_cidr: "10.80.0.0/16".parse().unwrap(),
        lan_subnet_prefix: 24,
        public_ipv4: Vec::new(),
    };
    let pools = Pools {
        ssh: (20_000, 20_009),
        web: (30_000, 30_009),
    };
    let request = |n_vcpus| PlacementRequest {
        owner: UserId(1),
        resource_type: ResourceType::Container,
        size: Size {
            n_vcpus,
            mem_gib: 1,
            disk_size_gib: 10,
        },
        cpu_tier: CpuTier::GeneralPurpose,
        gpu_model: None,
        flavor: "base".to_owned(),
        web: false,
        images: Vec::new(),
        nodes: None,
    };
    let mut inventory = Inventory::new(vec![node], pools);
    let available =
        |inventory: &Inventory, n_vcpus| inventory.place(&request(n_vcpus)).unwrap_err().fields;
    assert_eq!(available(&inventory, 3), [("n_vcpus", 3, 2)]);
    for left in [3, 1] {
        let claim = inventory.place(&request(2)).unwrap().claim;
        inventory.add(&claim);
        assert_eq!(
            inventory.largest_free(&request(1)).unwrap().n_vcpus,
            left.min(2)
        );
        // Growth beyond the node is refused, although more is unclaimed.
        let more = Size {
            n_vcpus: 3,
            ..claim.size
        };
        assert_eq!(
            inventory.grow(&claim, more).unwrap_err().fields,
            [("n_vcpus", 3, 2)]
        );
    }
    assert_eq!(available(&inventory, 2), [("n_vcpus", 2, 1)]);
    let [(_, capacity, claimed), ..] = inventory.usage()[0].quantities;
    assert_eq!((capacity, claimed), (5, 4));
}

#[test]
fn a_volume_claims_disk_and_brings_its_instances_to_its_node() {
    let pools = Pools {
        ssh: (20_000, 20_009),
        web: (30_000, 30_009),
    };
    let mut inventory = Inventory::new(vec![setup("a", "h"), setup("b", "h")], pools);
    let (a, b, owner) = (NodeId("a".to_owned()), NodeId("b".to_owned()), UserId(1));
    let tier = CpuTier::GeneralPurpose;
    let most = setup("a", "h").capacity.disk_size_gib;
    assert_eq!(inventory.place_volume(1, tier, None), Ok(a.clone()));
    let volume = Volume {
        id: VolumeId(uuid::Uuid::nil()),
        seq: 1,
        owner,
        name: Name::parse("data").unwrap(),
        size_gib: most,
        cpu_tier: tier,
        created_at: Timestamp(0),
        rate: Rate(0),
        node: a.clone(),
        deleted: false,
        made: true,
        failure: None,
        events: 0,
        ledger_entries: 0,
        last_event_at: Timestamp(0),
        billed: false,
        of: OfVolume::default(),
    };
    inventory.hold_kept(&volume, true);
    assert_eq!(inventory.used(owner).volume_gib, u64::from(most));
    assert_eq!(inventory.place_volume(1, tier, None), Ok(b.clone()));
    assert_eq!(
        inventory.place_volume(most + 1, tier, None),
        Err(Some(most))
    );
    let request = PlacementRequest {
        owner,
        resource_type: ResourceType::Container,
        size: Size {
            n_vcpus: 1,
            mem_gib: 1,
            disk_size_gib: 1,
        },
        cpu_tier: tier,
        gpu_model: None,
        flavor: "base".to_owned(),
        web: false,
        images: Vec::new(),
        nodes: Some(vec![a.clone()]),
    };
    let short = inventory.place(&request).unwrap_err();
    assert_eq!(short.fields, [("disk_size_gib", 1, 0)]);
    inventory.hold_kept(&volume, false);
    assert_eq!(inventory.place(&request).unwrap().claim.node, a);
    assert_eq!(inventory.used(owner).n_volumes, 0);
    inventory.set_drained(&a, true);
    assert!(inventory.place(&request).unwrap_err().fields.is_empty());
    let none = Supports {
        containers: true,
        vms: false,
        gpus: false,
        volumes: false,
    };
    inventory.set_supports(&b, none);
    assert_eq!(inventory.place_volume(1, tier, None), Err(None));
    inventory.set_drained(&a, false);
    inventory.set_limits_broken(&a, true);
    assert_eq!(inventory.place_volume(1, tier, None), Err(None));
    assert!(inventory.has_broken_limits_for(tier, None));
    assert!(!inventory.has_broken_limits_for(tier, Some(&[b])));
}

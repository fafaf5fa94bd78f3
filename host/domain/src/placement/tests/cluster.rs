//! The private addresses that nodes of a cluster share.

use super::{Inventory, NodeSetup, PlacementRequest, Pools, cluster_of, setup};
use crate::capacity::{Claim, CpuTier, Size};
use crate::ids::{NodeId, UserId};
use crate::instance::ResourceType;
use crate::placement::MoveRequest;

const ANN: UserId = UserId(1);
const BOB: UserId = UserId(2);

/// Two nodes of a cluster, and one of its own with the same range.
fn setups() -> Vec<NodeSetup> {
    let member = |name| NodeSetup {
        cluster: Some(cluster_of("east")),
        ..setup(name, "h")
    };
    vec![member("a"), member("b"), setup("own", "h")]
}

fn empty(setups: Vec<NodeSetup>) -> Inventory {
    let pools = Pools {
        ssh: (20_000, 20_099),
        web: (30_000, 30_009),
    };
    Inventory::new(setups, pools)
}

fn request(owner: UserId) -> PlacementRequest {
    PlacementRequest {
        owner,
        resource_type: ResourceType::Container,
        size: Size {
            n_vcpus: 1,
            mem_gib: 1,
            disk_size_gib: 1,
        },
        cpu_tier: CpuTier::GeneralPurpose,
        gpu_model: None,
        flavor: "base".to_owned(),
        web: false,
        images: Vec::new(),
        nodes: None,
    }
}

/// The claim that a new instance of an owner would have on a node.
fn next(inventory: &Inventory, node: &str, owner: UserId) -> Claim {
    let node = inventory.node(&NodeId(node.to_owned())).unwrap();
    inventory.placement(node, &request(owner)).unwrap().claim
}

fn add(inventory: &mut Inventory, node: &str, owner: UserId) -> [u8; 4] {
    let claim = next(inventory, node, owner);
    inventory.add(&claim);
    claim.lan_ipv4.octets()
}

#[test]
fn nodes_of_a_cluster_share_the_addresses_of_one_range() {
    let mut inventory = empty(setups());
    assert_eq!(add(&mut inventory, "a", ANN), [10, 80, 0, 2]);
    assert_eq!(add(&mut inventory, "b", ANN), [10, 80, 0, 3]);
    assert_eq!(add(&mut inventory, "b", BOB), [10, 80, 1, 2]);
    assert_eq!(add(&mut inventory, "a", BOB), [10, 80, 1, 3]);
    assert_eq!(add(&mut inventory, "own", BOB), [10, 80, 0, 2]);
}

#[test]
fn another_driver_range_or_prefix_has_addresses_of_its_own() {
    let same = setups().remove(0);
    let mut driver = cluster_of("east");
    driver.driver = "other".to_owned();
    for (n, other) in [
        NodeSetup {
            cluster: Some(driver),
            ..same.clone()
        },
        NodeSetup {
            cluster: Some(cluster_of("west")),
            ..same.clone()
        },
        NodeSetup {
            lan_cidr: "10.80.0.0/17".parse().unwrap(),
            ..same.clone()
        },
        NodeSetup {
            lan_subnet_prefix: 25,
            ..same.clone()
        },
    ]
    .into_iter()
    .enumerate()
    {
        let other = NodeSetup {
            id: NodeId("other".to_owned()),
            ..other
        };
        let mut inventory = empty(vec![same.clone(), other]);
        add(&mut inventory, "a", ANN);
        assert_eq!(add(&mut inventory, "other", BOB), [10, 80, 0, 2], "{n}");
    }
    // A range is one, whichever of its addresses the setting has.
    let other = NodeSetup {
        id: NodeId("other".to_owned()),
        lan_cidr: "10.80.7.7/16".parse().unwrap(),
        ..same.clone()
    };
    let mut inventory = empty(vec![same, other]);
    add(&mut inventory, "a", ANN);
    assert_eq!(add(&mut inventory, "other", BOB), [10, 80, 1, 2]);
}

#[test]
fn an_address_that_two_nodes_gave_earlier_is_taken_until_both_instances_are_gone() {
    let mut apart = setups();
    apart.iter_mut().for_each(|setup| setup.cluster = None);
    let apart = empty(apart);
    let (ann, bob) = (next(&apart, "a", ANN), next(&apart, "b", BOB));
    assert_eq!(ann.lan_ipv4, bob.lan_ipv4);
    let mut inventory = empty(setups());
    let all = inventory.add_all(|add| {
        [&ann, &bob].into_iter().for_each(add);
        Ok::<_, ()>(())
    });
    all.unwrap();
    for (node, owner, subnet) in [("a", BOB, 1), ("b", ANN, 1), ("b", UserId(3), 1)] {
        assert_eq!(next(&inventory, node, owner).lan_subnet, subnet);
    }
    // A stopped instance keeps its claim of the address.
    let stopped = Claim {
        compute: false,
        ..ann.clone()
    };
    inventory.replace(&ann, &stopped);
    inventory.remove(&stopped);
    assert_eq!(next(&inventory, "a", BOB).lan_ipv4.octets(), [10, 80, 0, 3]);
    assert_eq!(next(&inventory, "a", ANN).lan_subnet, 1);
    inventory.remove(&bob);
    assert_eq!(next(&inventory, "b", ANN).lan_ipv4.octets(), [10, 80, 0, 2]);
}

fn move_of(inventory: &Inventory, claim: &Claim) -> Claim {
    let request = MoveRequest {
        placement: request(claim.owner),
        claim,
        ssh_host: "h",
        run: false,
    };
    let place = inventory.place_move(&request, |node| node.0 != "own");
    place.unwrap().claim
}

#[test]
fn a_move_between_them_keeps_the_address_if_no_other_instance_has_it() {
    let mut inventory = empty(setups());
    let claim = next(&inventory, "a", ANN);
    inventory.add(&claim);
    let moved = move_of(&inventory, &claim);
    assert_eq!(moved.lan_ipv4, claim.lan_ipv4);
    // A failed move, and one that succeeds.
    inventory.reserve(&moved, true, true);
    inventory.reserve(&moved, true, false);
    assert_eq!(next(&inventory, "b", ANN).lan_ipv4.octets(), [10, 80, 0, 3]);
    inventory.reserve(&moved, true, true);
    inventory.reserve(&moved, true, false);
    inventory.remove(&claim);
    inventory.add(&moved);
    assert_eq!(next(&inventory, "a", ANN).lan_ipv4.octets(), [10, 80, 0, 3]);
    inventory.remove(&moved);
    assert_eq!(next(&inventory, "a", BOB).lan_ipv4.octets(), [10, 80, 0, 2]);

    let twin = Claim {
        node: NodeId("b".to_owned()),
        owner: BOB,
        ..claim.clone()
    };
    inventory.add(&claim);
    inventory.add(&twin);
    let moved = move_of(&inventory, &claim);
    assert_eq!(moved.lan_ipv4.octets(), [10, 80, 1, 2]);
    inventory.reserve(&moved, true, true);
    assert_eq!(next(&inventory, "a", ANN).lan_ipv4.octets(), [10, 80, 1, 3]);
    inventory.reserve(&moved, true, false);
    assert_eq!(next(&inventory, "a", ANN).lan_ipv4.octets(), [10, 80, 1, 2]);
}

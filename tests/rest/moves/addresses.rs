//! The private addresses that nodes of a cluster share.

use super::Cluster;
use crate::{Expected, running, uuid, wait_until};
use serde_json::Value;
use std::collections::BTreeSet;
use wharf_tests::small;

/// A cluster of two nodes with one range.
fn start() -> Cluster {
    Cluster::start_with(&[("one", ""), ("two", "")], |node| {
        let node = node.replace("10.81.0.0/16", "10.80.0.0/16");
        format!("{node}cluster = \"east\"\n")
    })
}

fn address(instance: &Value) -> String {
    instance["lan_ipv4"].as_str().unwrap().to_owned()
}

fn subnet(address: &str) -> String {
    address.rsplit_once('.').unwrap().0.to_owned()
}

fn addresses(instances: &[Value]) -> BTreeSet<String> {
    instances.iter().map(address).collect()
}

#[test]
fn an_owner_has_one_subnet_on_the_nodes_of_a_cluster_and_a_move_keeps_the_address() {
    let mut cluster = start();
    let stopped = cluster.stopped(&small("container"));
    let other = cluster.running(&small("container"));
    assert!(cluster.machines(0).contains_key(uuid(&stopped)));
    let bob = cluster.server.user("bob@example.com").unwrap();
    let mut of_bob: Vec<_> = (0..4).map(|_| running(&bob)).collect();
    for node in 0..2 {
        let machines = cluster.machines(node);
        assert!(of_bob.iter().any(|one| machines.contains_key(uuid(one))));
    }
    cluster.drain("one");
    wait_until("the instance has moved", || {
        let there = cluster.machines(1).contains_key(uuid(&stopped));
        Ok(there.then_some(()))
    });
    let moved = cluster.now(&stopped);
    assert_eq!(moved["lan_ipv4"], stopped["lan_ipv4"]);
    cluster.restart_server();
    let bob = cluster.server.again(&bob);
    let of_ann = [moved, other, cluster.running(&small("container"))];
    of_bob.push(running(&bob));
    let (anns, bobs) = (addresses(&of_ann), addresses(&of_bob));
    assert_eq!((anns.len(), bobs.len()), (3, 5), "{anns:?} {bobs:?}");
    let subnets: [BTreeSet<_>; 2] =
        [&anns, &bobs].map(|all| all.iter().map(|one| subnet(one)).collect());
    assert!(subnets.iter().all(|all| all.len() == 1), "{subnets:?}");
    assert_ne!(subnets[0], subnets[1]);

    of_bob
        .iter()
        .for_each(|one| drop(bob.delete(uuid(one)).is(204)));
    wait_until("bob's instances are gone", || {
        let left: usize = (0..2).map(|node| cluster.machines(node).len()).sum();
        Ok((left == of_ann.len()).then_some(()))
    });
    cluster.finish();
}

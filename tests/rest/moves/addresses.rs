//! The private addresses that nodes of a cluster share.

use super::Cluster;
use crate::{Expected, running, uuid, wait_until};
use serde_json::Value;
use std::collections::BTreeSet;
use wharf_tests::{Api, small};

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

/// Creates instances until the owner has some on each node.
fn on_both(cluster: &Cluster, api: &Api) -> Vec<Value> {
    let create = |_| {
        let created = api.create(&small("container")).unwrap();
        let created = created.is(201);
        api.wait_for(uuid(&created), "running").unwrap()
    };
    let all: Vec<_> = (0..4).map(create).collect();
    for node in 0..2 {
        let machines = cluster.machines(node);
        assert!(all.iter().any(|one| machines.contains_key(uuid(one))));
    }
    all
}

#[test]
fn an_owner_has_one_subnet_on_the_nodes_of_a_cluster() {
    let mut cluster = start();
    let bob = cluster.server.user("bob@example.com").unwrap();
    let mut of_ann: Vec<_> = on_both(&cluster, &cluster.api)
        .iter()
        .map(address)
        .collect();
    let first = on_both(&cluster, &bob);
    let mut of_bob: Vec<_> = first.iter().map(address).collect();
    cluster.restart_server();
    let bob = cluster.server.again(&bob);
    let more = cluster.api.small_container().unwrap();
    of_ann.push(address(&more));
    let last = bob.small_container().unwrap();
    of_bob.push(address(&last));
    let subnets = |all: &[String]| -> BTreeSet<_> { all.iter().map(|one| subnet(one)).collect() };
    let (anns, bobs) = (subnets(&of_ann), subnets(&of_bob));
    assert_eq!((anns.len(), bobs.len()), (1, 1), "{anns:?} {bobs:?}");
    assert_ne!(anns, bobs);
    let all: BTreeSet<_> = of_ann.iter().chain(&of_bob).collect();
    assert_eq!(all.len(), of_ann.len() + of_bob.len(), "{all:?}");

    bob.wait_for(uuid(&last), "running").unwrap();
    cluster.api.wait_for(uuid(&more), "running").unwrap();
    for instance in first.iter().chain([&last]) {
        bob.delete(uuid(instance)).is(204);
    }
    wait_until("bob's instances are gone", || {
        let left: usize = (0..2).map(|node| cluster.machines(node).len()).sum();
        Ok((left == of_ann.len()).then_some(()))
    });
    cluster.finish();
}

#[test]
fn a_move_keeps_the_private_address() {
    let mut cluster = start();
    let stopped = cluster.stopped(&small("container"));
    let other = cluster.running(&small("container"));
    assert!(cluster.machines(0).contains_key(uuid(&stopped)));
    cluster.drain("one");
    wait_until("the instance has moved", || {
        Ok(cluster
            .machines(1)
            .contains_key(uuid(&stopped))
            .then_some(()))
    });
    let moved = cluster.now(&stopped);
    assert_eq!(moved["lan_ipv4"], stopped["lan_ipv4"]);
    assert!(cluster.machines(1).contains_key(uuid(&moved)));
    cluster.restart_server();
    let third = cluster.running(&small("container"));
    let all: BTreeSet<_> = [&moved, &other, &third].map(address).into();
    assert_eq!(all.len(), 3, "{all:?}");
    cluster.finish();
}

#[test]
fn addresses_that_two_nodes_gave_before_they_shared_them_stay() {
    let lan = "lan_cidr = \"10.80.0.0/16\"";
    let mut cluster = Cluster::start_with(&[("one", ""), ("two", "")], |node| {
        node.replace("10.81.0.0/16", "10.80.0.0/16")
    });
    let bob = cluster.server.user("bob@example.com").unwrap();
    let old = cluster.running(&small("container"));
    let of_bob = bob.small_container().unwrap();
    assert_eq!(address(&old), address(&of_bob));
    bob.wait_for(uuid(&of_bob), "running").unwrap();
    cluster.server.terminate().unwrap();
    let config = cluster.server.config_path();
    let text = std::fs::read_to_string(&config).unwrap();
    let together = text.replace(lan, &format!("cluster = \"east\"\n{lan}"));
    assert_ne!(together, text);
    std::fs::write(&config, together).unwrap();
    cluster.server.run().unwrap();
    cluster.api = cluster.server.again(&cluster.api);
    let bob = cluster.server.again(&bob);

    let new = cluster.running(&small("container"));
    let more = running(&bob);
    let all: BTreeSet<_> = [&old, &new, &more].map(|one| subnet(&address(one))).into();
    assert_eq!(all.len(), 3, "{all:?}");
    for instance in [&of_bob, &more] {
        bob.delete(uuid(instance)).is(204);
    }
    wait_until("bob's instances are gone", || {
        let left: usize = (0..2).map(|node| cluster.machines(node).len()).sum();
        Ok((left == 2).then_some(()))
    });
    let last = cluster.running(&small("container"));
    assert_ne!(address(&last), address(&old));
    cluster.finish();
}

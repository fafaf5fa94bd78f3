//! `wharf node drain` and `wharf node resume`.

use crate::{Expected, made, start_on, until_true, uuid, with};
use serde_json::{Value, json};
use wharf_tests::{Api, Server, lasting_node};

/// Starts a server with two nodes, whose instances outlive it.
fn start() -> (Server, Api) {
    let (one, first) = lasting_node("one", "").unwrap();
    let (two, second) = lasting_node("two", "").unwrap();
    let two = two.replace(
        "public_ipv4 = [\"203.0.113.0/28\"]",
        "public_ipv4 = [\"203.0.113.16/28\"]\nlan_cidr = \"10.81.0.0/16\"",
    );
    let (server, api) = start_on("", &format!("{one}{two}"));
    (server.keeping(first).keeping(second), api)
}

fn whole(n_vcpus: u32) -> Value {
    with("container", json!({ "n_vcpus": n_vcpus }))
}

fn running(api: &Api, n_vcpus: u32) -> String {
    let running = made(api, &whole(n_vcpus));
    uuid(&running).to_owned()
}

fn listed(server: &Server, node: &str) -> String {
    let list = server.cli(&["node", "list"]).unwrap();
    let line = list.lines().find(|line| line.starts_with(node)).unwrap();
    line.to_owned()
}

#[test]
fn a_drained_node_takes_no_new_instances_and_no_starts() {
    let (mut server, api) = start();
    // Ties go to the first name, so the nodes take turns.
    let (on_one, on_two) = (running(&api, 2), running(&api, 2));
    let left = server.cli(&["node", "drain", "one"]).unwrap();
    assert!(
        left.contains("instances left: 1") && left.contains(&on_one) && !left.contains(&on_two),
        "{left}"
    );
    assert!(server.cli(&["node", "drain", "three"]).is_err());
    let line = listed(&server, "one");
    assert!(line.contains("  1  ") && line.contains("drained"), "{line}");
    // Running instances stay, and new ones go elsewhere.
    assert_eq!(api.instance(&on_one).unwrap().body["state"], "running");
    let big = running(&api, 14);
    let refused = api.create(&whole(1)).is(422);
    assert_eq!(
        refused["detail"]["nearest_available"],
        json!({ "n_vcpus": 0 }),
        "{refused}"
    );
    api.act(&on_one, "stop").is(200);
    until_true("its compute is free", || {
        listed(&server, "one").contains(" 0/16 ")
    });
    let refused = api.act(&on_one, "restart").is(422);
    let available = &refused["detail"]["nearest_available"];
    assert_eq!(available, &json!({ "n_vcpus": 0, "mem_gib": 0 }));

    // It is durable, and works without a server.
    server.kill().unwrap();
    assert!(listed(&server, "one").contains("drained"));
    server.run().unwrap();
    let api = server.again(&api);
    api.create(&whole(1)).is(422);
    server.cli(&["node", "resume", "one"]).unwrap();
    assert!(!listed(&server, "one").contains("drained"));
    api.act(&on_one, "restart").is(200);
    running(&api, 1);
    assert_eq!(api.instance(&big).unwrap().body["state"], "running");
    let audit = server.cli(&["audit"]).unwrap();
    assert!(
        audit.contains("node.drain") && audit.contains("node.resume"),
        "{audit}"
    );
}

#[test]
fn the_estimate_of_a_shortage_leaves_a_drained_node_out() {
    let (server, api) = start();
    server.cli(&["node", "drain", "two"]).unwrap();
    running(&api, 10);
    // Node two would be nearer.
    let refused = api.create(&whole(17)).is(422);
    let available = &refused["detail"]["nearest_available"];
    assert_eq!(available, &json!({ "n_vcpus": 6 }), "{refused}");
    // Growth on a drained node is a shortage too.
    let id = running(&api, 1);
    server.cli(&["node", "drain", "one"]).unwrap();
    let refused = api.patch(&id, &json!({ "n_vcpus": 2 })).is(422);
    let available = &refused["detail"]["nearest_available"];
    assert_eq!(available, &json!({ "n_vcpus": 1 }), "{refused}");
}

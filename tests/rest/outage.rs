//! Outages of a node: its instances keep their state and their resources.

use crate::{Expected, kill, made, start_on, until_says, until_true, uuid, with};
use serde_json::{Value, json};
use std::path::PathBuf;
use wharf_tests::{Api, Server, observed, simulated_node};

const BRIEF: &str =
    "provisioning_deadline_s = 1\n[limits]\nobserve_every_ms = 100\nanswer_wait_ms = 300\n";

/// A server on one simulated node, whose engine has switches.
pub struct Node {
    pub server: Server,
    pub api: Api,
    dir: tempfile::TempDir,
}

impl Node {
    fn start() -> Self {
        Self::start_with(BRIEF)
    }

    pub fn start_with(top: &str) -> Self {
        Self::start_on(top, "")
    }

    /// Starts a server whose engine has more settings.
    pub fn start_on(top: &str, settings: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name).display().to_string();
        let switches = format!(
            "{settings}unreachable_while = \"{}\", other_store_while = \"{}\"",
            path("unreachable"),
            path("other-store")
        );
        let endpoint = format!("simulated://{}\"", path("engine"));
        let (server, api) = start_on(
            top,
            &simulated_node("one", &switches).replace("simulated:\"", &endpoint),
        );
        Self { server, api, dir }
    }

    fn switch(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn on(&self, name: &str) {
        std::fs::write(self.switch(name), "").unwrap();
    }

    pub fn off(&self, name: &str) {
        std::fs::remove_file(self.switch(name)).unwrap();
    }

    pub fn running(&self, n_vcpus: u32) -> Value {
        let body = with("container", json!({ "n_vcpus": n_vcpus }));
        made(&self.api, &body)
    }

    fn state(&self, instance: &Value) -> Value {
        let now = self.api.instance(uuid(instance)).unwrap();
        now.is(200)["state"].clone()
    }

    /// Waits until `wharf node list` has the words.
    pub fn listed(&self, words: &str) {
        until_says(&self.server, &["node", "list"], words);
    }

    /// Waits for several more observations.
    fn observed(&self) {
        observed(&self.api, "one", 6).unwrap();
    }
}

#[test]
fn an_empty_store_is_an_outage_until_the_own_store_returns() {
    let mut node = Node::start();
    let (first, second) = (node.running(10), node.running(2));
    let deleted = node.running(1);
    node.on("other-store");
    node.listed("outage: the engine's store is empty and has lost its mark");
    node.api.delete(uuid(&deleted)).is(204);
    let waiting = node.api.small_container().unwrap();
    node.observed();
    for instance in [&first, &second] {
        assert_eq!(node.state(instance), "running");
    }
    // Nothing is made in the other store, not even after a new start of Wharf.
    assert_eq!(node.state(&waiting), "provisioning");
    node.api = kill(&mut node.server, &node.api);
    node.listed("outage: ");
    node.observed();
    assert_eq!(node.state(&waiting), "provisioning");
    assert_eq!(node.state(&first), "running");
    // The claims are held, that of the deleted instance too.
    let large = with("container", json!({ "n_vcpus": 3 }));
    node.api.create(&large).is(422);
    let log = node.server.log();
    assert!(log.contains("wharf node accept one"), "{log}");

    node.off("other-store");
    node.listed("reachable");
    node.api.wait_for(uuid(&waiting), "running").unwrap();
    node.observed();
    for instance in [&first, &second] {
        assert_eq!(node.state(instance), "running");
        let events = node.server.cli(&["events", uuid(instance)]).unwrap();
        assert!(
            !events.contains("died") && !events.contains("failed"),
            "{events}"
        );
    }
    // The deletion is carried out now.
    until_true("the vCPUs of the deleted instance are free", || {
        node.api.create(&large).unwrap().status == 201
    });
}

#[test]
fn another_store_does_not_make_a_node_forget_its_images() {
    let dir = tempfile::tempdir().unwrap();
    let flag = dir.path().join("made");
    std::fs::write(&flag, "").unwrap();
    let images = format!(
        "missing_images = [\"localhost/wharf/marimo:1\"], images_while = \"{}\", ",
        flag.display()
    );
    let limits = "[limits]\nobserve_every_ms = 100\nprobe_every_ms = 100\n";
    let node = Node::start_on(limits, &images);
    let marimo = with("container", json!({ "flavor": "marimo" }));
    made(&node.api, &marimo);
    // The other store has no images.
    node.on("other-store");
    node.listed("outage: ");
    std::fs::remove_file(&flag).unwrap();
    node.observed();
    let waiting = node.api.create(&marimo).is(201);
    std::fs::write(&flag, "").unwrap();
    node.off("other-store");
    node.api.wait_for(uuid(&waiting), "running").unwrap();
    // An image that is gone from the node's own store is missing.
    std::fs::remove_file(&flag).unwrap();
    until_true("the image is missing", || {
        node.api.create(&marimo).unwrap().status == 422
    });
}

#[test]
fn a_creation_out_of_reach_past_its_deadline_is_carried_out_later_and_a_start_is_refused() {
    let node = Node::start();
    let instance = node.running(1);
    let id = uuid(&instance);
    node.api.act(id, "stop").is(200);
    node.on("unreachable");
    node.listed("out of reach");
    node.api.act(id, "restart").is(502);
    let created = node.api.small_container().unwrap();
    // The deadline is one second, and an observation takes a tenth at least.
    observed(&node.api, "one", 25).unwrap();
    assert_eq!(node.state(&instance), "exited");
    assert_eq!(node.state(&created), "provisioning");
    node.off("unreachable");
    node.api.wait_for(uuid(&created), "running").unwrap();
    // The refused start is not carried out later.
    assert_eq!(node.state(&instance), "exited");
    let events = node.server.cli(&["events", id]).unwrap();
    assert!(!events.contains("restart"), "{events}");
    node.api.act(id, "restart").is(200);
}

#[test]
fn the_operator_accepts_an_engine_and_absent_instances_have_ended() {
    let node = Node::start();
    let (first, second) = (node.running(10), node.running(1));
    let refused = node.server.cli(&["node", "accept", "one"]);
    assert!(refused.unwrap_err().to_string().contains("no outage"));
    node.on("other-store");
    node.listed("outage: ");
    let waiting = node.api.small_container().unwrap();
    node.server.cli(&["node", "accept", "one"]).unwrap();
    for instance in [&first, &second] {
        node.api.wait_for(uuid(instance), "exited").unwrap();
    }
    node.listed("reachable");
    node.api.wait_for(uuid(&waiting), "running").unwrap();
    // Their compute is free, and they can be deleted.
    node.running(10);
    for instance in [&first, &second] {
        node.api.delete(uuid(instance)).is(204);
    }
    // The earlier store is another one now.
    node.off("other-store");
    node.listed("outage: the engine has another store");
}

#[test]
fn a_resize_waits_for_the_nodes_own_store() {
    let node = Node::start();
    let instance = node.running(1);
    let resize = || {
        let resized = node.api.patch(uuid(&instance), &json!({ "n_vcpus": 2 }));
        resized.unwrap()
    };
    node.on("other-store");
    node.listed("outage: ");
    // The other store says that the instance does not run there, which is no reason to blame the size.
    assert_eq!(resize().status, 502);
    node.off("other-store");
    node.listed("reachable");
    assert_eq!(resize().status, 200);
}

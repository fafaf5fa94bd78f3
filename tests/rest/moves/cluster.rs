//! A server whose nodes are in one cluster.

use crate::{Expected, kill, made, uuid, wait_until};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use tempfile::TempDir;
use wharf_tests::{Api, Server, called, lasting_node, small};

const BRIEF: &str =
    "provisioning_deadline_s = 5\n[limits]\nobserve_every_ms = 100\nanswer_wait_ms = 2000\n";

/// A server with nodes in one cluster, whose instances outlive it.
pub struct Cluster {
    pub server: Server,
    pub api: Api,
    dirs: Vec<TempDir>,
}

impl Cluster {
    /// Starts a cluster of nodes with these names and settings.
    pub fn start(nodes: &[(&str, &str)]) -> Self {
        Self::start_with(nodes, |node| format!("{node}cluster = \"east\"\n"))
    }

    pub fn start_with(nodes: &[(&str, &str)], edit: impl Fn(String) -> String) -> Self {
        let (mut settings, mut dirs) = (String::new(), Vec::new());
        for (n, (name, own)) in nodes.iter().enumerate() {
            let dir = tempfile::tempdir().unwrap();
            let away = format!("unreachable_while = \"{}/away\"", dir.path().display());
            let own = [own, away.as_str()].join(if own.is_empty() { "" } else { ", " });
            let (node, files) = lasting_node(name, &own).unwrap();
            let node = node.replace(
                "public_ipv4 = [\"203.0.113.0/28\"]",
                &format!(
                    "public_ipv4 = [\"203.0.113.{}/28\"]\nlan_cidr = \"10.{}.0.0/16\"",
                    n * 16,
                    80 + n
                ),
            );
            settings += &edit(node);
            dirs.extend([files, dir]);
        }
        let (server, api) = crate::start_on(BRIEF, &settings);
        Self { server, api, dirs }
    }

    /// Takes the engine of the node with this number out of reach, or back.
    pub fn away(&self, node: usize, away: bool) {
        let file = self.dirs[2 * node + 1].path().join("away");
        if away {
            std::fs::write(file, "").unwrap()
        } else {
            std::fs::remove_file(file).unwrap()
        }
    }

    /// The machines of a node's engine.
    pub fn machines(&self, node: usize) -> BTreeMap<String, Value> {
        machines(&self.dirs[2 * node].path().join("engine"))
    }

    /// The volumes of a node's engine.
    pub fn volumes(&self, node: usize) -> BTreeMap<String, Value> {
        let file = self.dirs[2 * node].path().join("engine");
        let mut volumes = BTreeMap::new();
        for line in std::fs::read_to_string(file).unwrap().lines() {
            let Ok(line) = serde_json::from_str::<Value>(line) else {
                continue;
            };
            let id = line["id"].as_str().unwrap().to_owned();
            match &line["volume"] {
                Value::Null => None,
                Value::String(_) => volumes.remove(&id),
                volume => volumes.insert(id, volume["Is"].clone()),
            };
        }
        volumes
    }

    pub fn running(&self, body: &Value) -> Value {
        made(&self.api, body)
    }

    pub fn stopped(&self, body: &Value) -> Value {
        let running = self.running(body);
        self.api.act(uuid(&running), "stop").is(200);
        self.api.wait_for(uuid(&running), "exited").unwrap()
    }

    /// Makes this number of instances, of which each second one is stopped.
    pub fn mixed(&self, count: usize) -> Vec<Value> {
        let body = small("container");
        let made = (0..count).map(|n| match n % 2 {
            0 => self.running(&body),
            _ => self.stopped(&body),
        });
        made.collect()
    }

    /// Drains one node after the other, and kills the server at other points of the moves each time.
    pub fn drain_under_kills(&mut self, nodes: &[&str], drains: usize) {
        for n in 0..drains {
            let (node, before) = (
                nodes[n % nodes.len()],
                nodes[(n + nodes.len() - 1) % nodes.len()],
            );
            self.server.cli(&["node", "resume", before]).unwrap();
            self.drain(node);
            for calls in [0, 10, 20, 40] {
                called(&self.api, calls + 3 * n).unwrap();
                self.restart_server();
            }
        }
    }

    pub fn delete(&self, instance: &Value) {
        self.api.delete(uuid(instance)).is(204);
    }

    pub fn drain(&self, node: &str) -> String {
        self.server.cli(&["node", "drain", node]).unwrap()
    }

    /// Waits until the drain of a node says this.
    pub fn drained(&self, node: &str, words: &str) -> String {
        wait_until(&format!("the drain of {node} says: {words}"), || {
            let left = self.server.cli(&["node", "drain", node])?;
            Ok(left.contains(words).then_some(left))
        })
    }

    pub fn restart_server(&mut self) {
        self.api = kill(&mut self.server, &self.api);
    }

    pub fn now(&self, instance: &Value) -> Value {
        let now = self.api.instance(uuid(instance)).unwrap();
        now.is(200)
    }

    /// The types of an instance's events.
    pub fn events(&self, instance: &Value) -> Vec<String> {
        let path = format!("/api/event/?after=0&limit=500&instance={}", uuid(instance));
        let events = self.api.get(&path).is(200);
        let events = events.as_array().unwrap().iter();
        let kind = |event: &Value| event["type"].as_str().unwrap().to_owned();
        events.map(kind).collect()
    }

    /// Ends the test. Each living instance is on exactly one node, with the address that its user sees.
    pub fn finish(self) {
        let instances = self.api.list().unwrap();
        let all: Vec<_> = (0..self.dirs.len() / 2).map(|n| self.machines(n)).collect();
        for instance in &instances {
            let on: Vec<_> = all
                .iter()
                .filter_map(|node| node.get(uuid(instance)))
                .collect();
            assert_eq!(on.len(), 1, "{instance}: {all:?}");
            assert_eq!(on[0]["wanted"]["address"], instance["lan_ipv4"]);
        }
        let on_nodes: usize = all.iter().map(BTreeMap::len).sum();
        assert_eq!(on_nodes, instances.len(), "{all:?}");
    }
}

/// The machines that the file of a simulated engine has.
pub fn machines(file: &Path) -> BTreeMap<String, Value> {
    let mut machines = BTreeMap::new();
    for line in std::fs::read_to_string(file).unwrap().lines() {
        let Ok(line) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        let id = line["id"].as_str().unwrap().to_owned();
        match (&line["machine"], line.get("mark")) {
            (_, Some(_)) => None,
            (Value::Null, None) => machines.remove(&id),
            (machine, None) => machines.insert(id, machine.clone()),
        };
    }
    machines
}

//! Networks of owners, with their forwards.

use super::{Fake, no, sync};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use wharf_guest::fake::Method;

/// A network.
#[derive(Default)]
pub struct FakeNetwork {
    pub body: Value,
    /// `Created` if empty.
    pub status: String,
    /// By their addresses.
    pub forwards: BTreeMap<String, Value>,
}

impl Fake {
    pub(super) fn network(
        &self,
        method: Method,
        path: &[&str],
        query: &str,
        body: Value,
    ) -> (u16, Value) {
        let mut networks = self.networks.borrow_mut();
        let (name, rest) = match path {
            [] => {
                assert!(matches!(method, Method::Post));
                let name = body["name"].as_str().unwrap().to_owned();
                if networks.contains_key(&name) {
                    return no(500, "The network already exists");
                }
                let made = FakeNetwork {
                    body,
                    ..FakeNetwork::default()
                };
                networks.insert(name, made);
                return sync(Value::Null);
            }
            [name, rest @ ..] => (*name, rest),
        };
        let Some(network) = networks.get_mut(name) else {
            return no(404, "Network not found");
        };
        let is_used = || {
            let instances = self.instances.borrow();
            let mut used = instances.values();
            used.any(|one| one.body["devices"]["eth0"]["network"] == name)
        };
        match (method, rest) {
            (Method::Get, []) => {
                let mut found = network.body.clone();
                // Incus adds keys of its own.
                found["config"]["volatile.network.ipv4.address"] = "198.18.40.10".into();
                found["status"] = if network.status.is_empty() {
                    "Created".into()
                } else {
                    network.status.as_str().into()
                };
                sync(found)
            }
            (Method::Delete, []) if is_used() => no(400, "The network is currently in use"),
            (Method::Delete, []) => {
                networks.remove(name);
                sync(Value::Null)
            }
            (Method::Get, ["forwards"]) => {
                assert!(query.contains("recursion=1"));
                sync(network.forwards.values().cloned().collect())
            }
            (Method::Post, ["forwards"]) => {
                let address = body["listen_address"].as_str().unwrap().to_owned();
                if network.forwards.contains_key(&address) {
                    return no(409, "A forward for that listen address already exists");
                }
                network.forwards.insert(address.clone(), body);
                let is_there = |one: &FakeNetwork| one.forwards.contains_key(&address);
                if networks.values().filter(|one| is_there(one)).count() > 1 {
                    networks.get_mut(name).unwrap().forwards.remove(&address);
                    return no(500, "The address overlaps with another network or NIC");
                }
                sync(Value::Null)
            }
            (Method::Put, ["forwards", address]) => {
                *network.forwards.get_mut(*address).unwrap() = body;
                sync(json!({}))
            }
            (Method::Delete, ["forwards", address]) => match network.forwards.remove(*address) {
                Some(_) => sync(json!({})),
                None => no(404, "Network forward not found"),
            },
            other => panic!("{other:?}"),
        }
    }
}

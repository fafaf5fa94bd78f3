//! The room of a node: sums, and things of which each has one holder.

use super::machine::{Machine, Size};
use super::settings::Capacity;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::net::Ipv4Addr;
use uuid::Uuid;

/// A thing with one holder.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Unique {
    Port(u16),
    Address(Ipv4Addr),
    Gpu(String),
}

/// The held quantities and things, and the capacity.
#[derive(Debug)]
pub struct Room {
    taken: HashMap<Unique, Uuid>,
    /// vCPUs and RAM of running machines, disk of all.
    used: Size,
    capacity: Option<Capacity>,
}

impl Room {
    /// Empty room of this capacity, or without bounds.
    pub fn new(capacity: Option<Capacity>) -> Self {
        Self {
            taken: HashMap::new(),
            used: Size::default(),
            capacity,
        }
    }

    /// The reason why a machine does not fit, in place of one that used `instead_of`.
    pub fn refusal(&self, id: Uuid, machine: &Machine, instead_of: Size) -> Option<(u16, Value)> {
        if let Some(unique) = machine
            .uniques()
            .into_iter()
            .find(|u| self.taken.get(u).is_some_and(|other| *other != id))
        {
            return Some((409, json!({ "message": format!("{unique:?} is taken") })));
        }
        let capacity = self.capacity?;
        let share = machine.share();
        let shortages: Vec<_> = [
            (
                "n_vcpus",
                share.n_vcpus,
                capacity.n_vcpus,
                self.used.n_vcpus,
                instead_of.n_vcpus,
            ),
            (
                "mem_gib",
                share.mem_gib,
                capacity.mem_gib,
                self.used.mem_gib,
                instead_of.mem_gib,
            ),
            (
                "disk_size_gib",
                share.disk_size_gib,
                capacity.disk_size_gib,
                self.used.disk_size_gib,
                instead_of.disk_size_gib,
            ),
        ]
        .into_iter()
        .filter_map(|(field, asked, total, used, instead_of)| {
            let free = total.saturating_sub(used.saturating_sub(instead_of));
            (asked > free).then(|| json!({ "field": field, "requested": asked, "available": free }))
        })
        .collect();
        (!shortages.is_empty()).then(|| (507, json!({ "shortages": shortages })))
    }

    /// Adds a machine.
    pub fn hold(&mut self, id: Uuid, machine: &Machine) {
        let share = machine.share();
        self.used.n_vcpus += share.n_vcpus;
        self.used.mem_gib += share.mem_gib;
        self.used.disk_size_gib += share.disk_size_gib;
        for unique in machine.uniques() {
            self.taken.insert(unique, id);
        }
    }

    /// Removes a machine.
    pub fn release(&mut self, id: Uuid, machine: &Machine) {
        let share = machine.share();
        self.used.n_vcpus -= share.n_vcpus;
        self.used.mem_gib -= share.mem_gib;
        self.used.disk_size_gib -= share.disk_size_gib;
        for unique in machine.uniques() {
            if self.taken.get(&unique) == Some(&id) {
                self.taken.remove(&unique);
            }
        }
    }
}

impl Machine {
    /// The quantities that the machine uses.
    pub fn share(&self) -> Size {
        let size = self.wanted.size;
        if self.runs() {
            size
        } else {
            Size {
                n_vcpus: 0,
                mem_gib: 0,
                ..size
            }
        }
    }

    /// Its things: the address always, ports and GPUs while it runs.
    fn uniques(&self) -> Vec<Unique> {
        let mut uniques = vec![Unique::Address(self.wanted.address)];
        if self.runs() {
            uniques.extend(self.wanted.node_ports.iter().copied().map(Unique::Port));
            uniques.extend(self.wanted.gpus.iter().cloned().map(Unique::Gpu));
        }
        uniques
    }
}

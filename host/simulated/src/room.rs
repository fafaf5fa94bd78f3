//! The resources that the machines of a node use: sums, and resources that only one machine can have.

use super::machine::{Machine, MachineSize};
use super::settings::SimulatedCapacity;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::net::Ipv4Addr;
use uuid::Uuid;

/// A resource that only one machine can have.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Unique {
    Port(u16),
    Address(Ipv4Addr),
    Gpu(String),
}

/// The used resources and the capacity of a node.
#[derive(Debug)]
pub struct NodeResources {
    taken: HashMap<Unique, Uuid>,
    /// Sum of the vCPUs and RAM of running machines and the disks of all machines.
    used: MachineSize,
    capacity: Option<SimulatedCapacity>,
}

impl NodeResources {
    /// Creates an empty node with a capacity, or with unlimited capacity.
    pub fn new(capacity: Option<SimulatedCapacity>) -> Self {
        Self {
            taken: HashMap::new(),
            used: MachineSize::default(),
            capacity,
        }
    }

    /// Returns the error response if a machine does not fit. It replaces a machine that uses
    /// `instead_of`.
    pub fn refusal(
        &self,
        id: Uuid,
        machine: &Machine,
        instead_of: MachineSize,
    ) -> Option<(u16, Value)> {
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

    /// Returns the error response if something else holds what only one machine can have.
    pub fn held(machine: &Machine, held: &[String]) -> Option<(u16, Value)> {
        let is_held = |name: &str| held.iter().any(|line| line == name);
        let short = |unique: Unique| match unique {
            Unique::Port(port) if is_held(&port.to_string()) => {
                Some(("node_port", u64::from(port)))
            }
            Unique::Address(address) if is_held(&address.to_string()) => Some(("lan_ipv4", 1)),
            Unique::Address(address) => {
                let address = address.to_string();
                let is_in = |line: &String| line.ends_with('.') && address.starts_with(line);
                held.iter().any(is_in).then_some(("lan_subnet", 1))
            }
            Unique::Gpu(device) if is_held(&device) => Some(("n_gpus", 1)),
            Unique::Port(_) | Unique::Gpu(_) => None,
        };
        let short = machine.uniques().into_iter().filter_map(short);
        let short: Vec<_> = short
            .map(|(field, requested)| json!({ "field": field, "requested": requested, "available": 0 }))
            .collect();
        (!short.is_empty()).then(|| (507, json!({ "shortages": short })))
    }

    /// Adds the resources of a machine.
    pub fn hold(&mut self, id: Uuid, machine: &Machine) {
        let share = machine.share();
        self.used.n_vcpus += share.n_vcpus;
        self.used.mem_gib += share.mem_gib;
        self.used.disk_size_gib += share.disk_size_gib;
        for unique in machine.uniques() {
            self.taken.insert(unique, id);
        }
    }

    /// Returns the error response if that much disk, in GiB, is not free.
    pub fn lack_of_disk(&self, size_gib: u32) -> Option<(u16, Value)> {
        let total = self.capacity?.disk_size_gib;
        let free = total.saturating_sub(self.used.disk_size_gib);
        let short = json!({ "field": "disk_size_gib", "requested": size_gib, "available": free });
        (free < size_gib).then(|| (507, json!({ "shortages": [short] })))
    }

    /// Adds the disk of a volume or a snapshot.
    pub fn hold_disk(&mut self, size_gib: u32) {
        self.used.disk_size_gib += size_gib;
    }

    /// Removes the disk of a volume or a snapshot.
    pub fn release_disk(&mut self, size_gib: u32) {
        self.used.disk_size_gib -= size_gib;
    }

    /// Removes the resources of a machine.
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
    /// Returns the amount that the machine uses.
    pub fn share(&self) -> MachineSize {
        let size = self.wanted.size;
        if self.runs() {
            size
        } else {
            MachineSize {
                n_vcpus: 0,
                mem_gib: 0,
                ..size
            }
        }
    }

    /// Returns the exclusive resources: always the address, and ports and GPUs while running.
    fn uniques(&self) -> Vec<Unique> {
        let mut uniques = vec![Unique::Address(self.wanted.address)];
        if self.runs() {
            uniques.extend(
                self.wanted
                    .node_ports
                    .iter()
                    .map(|at| Unique::Port(at.port)),
            );
            uniques.extend(self.wanted.gpus.iter().cloned().map(Unique::Gpu));
        }
        uniques
    }
}

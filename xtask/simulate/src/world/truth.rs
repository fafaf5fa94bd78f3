//! The truth about the world, for the checks.

use super::machine::{Machine, MachineKey, Moment, key};
use super::node::Node;
use super::{Request, State};
use wharf_domain::ids::{InstanceId, NodeId};

/// The truth about the world at a moment.
pub struct Truth<'a>(pub(super) &'a mut State, pub(super) Moment);

impl Truth<'_> {
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.0.nodes.values()
    }

    /// The machines of an instance: those in the own stores of nodes, and those that engines show. A machine that a call
    /// made in a store that the engine showed for a while is nobody's.
    pub fn machines_of(
        &self,
        id: InstanceId,
    ) -> impl Iterator<Item = (&NodeId, MachineKey, &Machine)> {
        let nodes = self.0.nodes.iter();
        let machines = nodes.flat_map(|(name, node)| {
            let machines = node.known().flat_map(|store| &store.machines);
            machines.map(move |(key, machine)| (name, *key, machine))
        });
        machines.filter(move |(_, key, _)| key.0 == id)
    }

    /// Whether a call that may bring a machine up is under way: one that Wharf waits for, or one that an engine
    /// carries out before Wharf's second look.
    pub fn may_come_up(&self, of: MachineKey) -> bool {
        let of = |request: &&Request| request.brings_up() && request.tag().map(key) == Some(of);
        let late = self
            .0
            .deferred
            .iter()
            .filter(|deferred| !deferred.after_second_look);
        let late = late.map(|deferred| &deferred.request);
        self.0
            .in_flight
            .values()
            .chain(late)
            .any(|request| of(&request))
    }

    /// Whether an engine made or started a machine after Wharf's second look, and no answer has told Wharf of it since.
    pub fn came_late(&self, of: MachineKey) -> bool {
        self.0.late.contains(&of)
    }

    /// The last moment at which an instance did not run; this one if it does not run now.
    pub fn last_down(&self, id: InstanceId) -> Moment {
        if self.machines_of(id).any(|(_, _, machine)| machine.runs()) {
            self.0.down.get(&id).copied().unwrap_or_default()
        } else {
            self.1
        }
    }
}

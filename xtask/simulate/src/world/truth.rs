//! The truth about the world, for the checks.

use super::machine::{Machine, MachineKey, Moment, key};
use super::node::Node;
use super::snapshot::StoredSnapshot;
use super::volume::StoredVolume;
use super::{Request, State, Store};
use wharf_domain::ids::{InstanceId, NodeId, SnapshotId, VolumeId};

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
            // Of two with one key, the one that Wharf sees counts: its database of an earlier moment knew no mark.
            let shown = &node.shown().machines;
            let own = node.own().machines.iter();
            let machines = own
                .filter(move |(key, _)| !shown.contains_key(*key))
                .chain(shown);
            machines.map(move |(key, machine)| (name, *key, machine))
        });
        machines.filter(move |(_, key, _)| key.0 == id)
    }

    /// Whether a call that may make a machine is under way: one that Wharf waits for, or one that an engine
    /// carries out before Wharf's second look.
    pub fn may_appear(&self, of: MachineKey) -> bool {
        let of = |request: &&Request| {
            matches!(request, Request::Ensure(_) | Request::Fetch(..))
                && request.tag().map(key) == Some(of)
        };
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

    /// Whether an engine ever made or started a machine after Wharf's second look.
    pub fn ever_came_late(&self, of: MachineKey) -> bool {
        self.0.ever_late.contains(&of)
    }

    /// Whether an engine gave a machine another size after Wharf's second look.
    pub fn is_sized_late(&self, of: MachineKey) -> bool {
        self.0.late_sizes.contains(&of)
    }

    /// A volume in the store that a node shows, and in the one that it does not.
    pub fn volume(&self, node: &NodeId, id: VolumeId) -> [Option<StoredVolume>; 2] {
        self.stores(node)
            .map(|store| store?.volumes.get(&id).copied())
    }

    /// A snapshot in the store that a node shows, and in the one that it does not.
    pub fn snapshot(&self, node: &NodeId, id: SnapshotId) -> [Option<&StoredSnapshot>; 2] {
        self.stores(node).map(|store| store?.snapshots.get(&id))
    }

    /// Whether the copy of a snapshot has ended.
    pub fn is_complete(&self, snapshot: &StoredSnapshot) -> bool {
        snapshot.is_complete(self.1)
    }

    /// The store that a node shows, and the one that it does not.
    fn stores(&self, node: &NodeId) -> [Option<&Store>; 2] {
        let Some(node) = self.0.nodes.get(node) else {
            return [None; 2];
        };
        let [own, other] = node.stores.each_ref().map(Some);
        if node.shows_other {
            [other, own]
        } else {
            [own, other]
        }
    }

    /// Whether a volume or a snapshot went with a store that is gone.
    pub fn is_gone(&self, node: &NodeId, id: InstanceId) -> bool {
        let node = self.0.nodes.get(node);
        node.is_none_or(|node| node.gone.contains(&id))
    }

    /// Whether a call that may make a volume or a snapshot is under way, or is carried out before Wharf's second look.
    pub fn may_be_made(&self, id: InstanceId) -> bool {
        let late = self.0.deferred.iter();
        let late = late.filter(|deferred| !deferred.after_second_look);
        let late = late.map(|deferred| &deferred.request);
        let mut requests = self.0.in_flight.values().chain(late);
        requests.any(|request| match request {
            Request::MakeVolume(of, _) => InstanceId::from(*of) == id,
            Request::TakeSnapshot(_, of) => InstanceId::from(*of) == id,
            _ => false,
        })
    }

    /// The last moment at which a machine did not run; this one if it does not run now.
    pub fn last_down(&self, of: MachineKey) -> Moment {
        let mut machines = self.machines_of(of.0);
        if machines.any(|(_, key, machine)| key == of && machine.runs()) {
            self.0.down.get(&of).copied().unwrap_or_default()
        } else {
            self.1
        }
    }
}

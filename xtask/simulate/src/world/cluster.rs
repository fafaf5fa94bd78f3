//! The members of a cluster: a machine is on one of them, and moves to another one.

use super::machine::{MachineKey, Moment, key};
use super::node::Node;
use super::{Answer, Request, State};
use wharf_domain::driver::{Phase, PluginError, Spec};
use wharf_domain::ids::NodeId;

impl State {
    /// Another member of the cluster of a node that has a machine, if the node itself does not have it. The cluster knows
    /// the machines of a member that shows another store.
    pub(super) fn elsewhere(&self, name: &NodeId, of: MachineKey) -> Option<NodeId> {
        let node = self.nodes.get(name)?;
        if node.shown().machines.contains_key(&of) {
            return None;
        }
        let beside = |other: &&Node| {
            node.setup.cluster.is_some() && node.setup.cluster == other.setup.cluster
        };
        let mut members = self.nodes.values().filter(beside);
        let member = members.find(|other| {
            let mut stores = other.known();
            other.setup.name != *name && stores.any(|store| store.machines.contains_key(&of))
        });
        member.map(|other| other.setup.name.clone())
    }

    /// Whether the cluster does not reach a machine of a member: the member is out of reach, or shows another store.
    pub(super) fn is_offline(&self, name: &NodeId, of: MachineKey, now: Moment) -> bool {
        let node = self.nodes.get(name);
        let shows_it = node.is_some_and(|node| node.shown().machines.contains_key(&of));
        self.is_away(name, now) || !shows_it
    }

    /// Brings a machine from another member of the cluster.
    pub(super) fn move_here(
        &mut self,
        name: &NodeId,
        spec: &Spec,
        from: Option<NodeId>,
        now: Moment,
    ) -> Result<Answer, PluginError> {
        let of = key(spec.target.tag);
        if let Some(from) = from {
            if self.is_offline(&from, of, now) {
                return Err(offline());
            }
            let source = self
                .nodes
                .get(&from)
                .and_then(|node| node.shown().machines.get(&of));
            let machine = source.cloned().ok_or(PluginError::NotFound)?;
            if machine.runs() {
                return Ok(Answer::Phase(Phase::Ready));
            }
            let node = self.nodes.get_mut(name).ok_or(PluginError::NotFound)?;
            let taken: Vec<_> = node.taken.iter().map(|(what, _)| what.clone()).collect();
            node.shown_mut().adopt(spec, &machine, &taken)?;
            if let Some(node) = self.nodes.get_mut(&from) {
                node.shown_mut().machines.remove(&of);
            }
        }
        self.on(name, &Request::Inspect(spec.target.tag), now)
    }
}

/// The error of a cluster that does not reach a member.
pub(super) fn offline() -> PluginError {
    PluginError::Other("the machine's node is offline".to_owned())
}

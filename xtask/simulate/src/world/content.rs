//! Content that moves between nodes without a common cluster.

use super::machine::{Moment, key};
use super::{Answer, Disk, Request, State};
use wharf_domain::driver::{DriverTarget, Phase, PluginError, Spec};
use wharf_domain::ids::NodeId;

impl State {
    /// Offers the content of a stopped machine.
    pub(super) fn offer(
        &mut self,
        name: &NodeId,
        target: &DriverTarget,
        now: Moment,
    ) -> Result<Answer, PluginError> {
        let answer = self.on(name, &Request::Inspect(target.tag), now)?;
        match answer {
            Answer::Phase(Phase::Stopped(_)) => {
                let of = key(target.tag);
                self.offers.insert(of.0, (name.clone(), of));
                Ok(answer)
            }
            Answer::Phase(Phase::Absent) => Err(PluginError::NotFound),
            answer => Ok(answer),
        }
    }

    /// Makes a machine with the content that another node offers, or that comes from a backup.
    pub(super) fn fetch(
        &mut self,
        name: &NodeId,
        spec: &Spec,
        of_backup: &Option<Disk>,
        now: Moment,
    ) -> Result<Answer, PluginError> {
        let of = key(spec.target.tag);
        let node = self.nodes.get(name).ok_or(PluginError::NotFound)?;
        let machines = &node.shown().machines;
        if !machines.contains_key(&of) {
            if machines.keys().any(|(other, _)| *other == of.0) {
                // A failed move has left it.
                return Err(PluginError::RetryLater(AGAIN));
            }
            if let Some(disk) = of_backup {
                let node = self.nodes.get_mut(name).ok_or(PluginError::NotFound)?;
                let taken: Vec<_> = node.taken.iter().map(|(what, _)| what.clone()).collect();
                node.shown_mut().fill(spec, disk, &taken)?;
                return self.on(name, &Request::Inspect(spec.target.tag), now);
            }
            let offer = self.offers.remove(&of.0);
            if offer.is_none() && spec.fetched {
                return Err(PluginError::Other("nothing offers the content".to_owned()));
            }
            let (from, source) = offer.ok_or(PluginError::RetryLater(AGAIN))?;
            if self.is_away(&from, now) {
                return Err(PluginError::Other("the old node is offline".to_owned()));
            }
            let from = self.nodes.get(&from);
            let machine = from.and_then(|from| from.shown().machines.get(&source));
            let machine = machine.cloned().ok_or(PluginError::NotFound)?;
            let node = self.nodes.get_mut(name).ok_or(PluginError::NotFound)?;
            let taken: Vec<_> = node.taken.iter().map(|(what, _)| what.clone()).collect();
            node.shown_mut().adopt(spec, &machine, &taken)?;
        }
        self.on(name, &Request::Inspect(spec.target.tag), now)
    }
}

/// The pause while no content is offered.
const AGAIN: std::time::Duration = std::time::Duration::from_millis(100);

//! The reasons for which the rows of an instance may change.

use super::{Ask, Known, Look, Model, Wrong, check, failed};
use crate::world::{BOOTED, MachineKey, MachineState, Truth};
use wharf_db::Read as _;
use wharf_domain::capacity::Claim;
use wharf_domain::driver::PluginError;
use wharf_domain::event::EventKind;
use wharf_domain::ids::{InstanceId, NodeId};
use wharf_domain::instance::{Intent, Progress};

impl Model {
    /// Checks that the difference since the last look has a reason.
    pub(super) fn explain(
        &self,
        id: InstanceId,
        before: Option<&Known>,
        after: Option<&Known>,
        look: &Look<'_>,
    ) -> Result<(), Wrong> {
        match (before, after) {
            (None, Some(after)) => self.explain_new(after, look),
            (Some(before), None) => {
                let given_up = self.given_up(id, before);
                // A deletion ends a lost instance, which is on no node, at once.
                let at_once =
                    before.claim.is_none() && self.is_asked(|asked| *asked == Ask::Delete(id));
                let asked = before.row.intent == Intent::Delete || given_up || at_once;
                check(asked, || {
                    "its row is gone, and nobody deleted it".to_owned()
                })?;
                if given_up || before.claim.is_none() {
                    return Ok(());
                }
                look.world.truth(|truth| is_free(truth, before))
            }
            (Some(before), Some(after)) => {
                self.explain_intent(id, before, after, look)?;
                self.explain_end(before, after, look)?;
                self.explain_row(id, before, after)?;
                self.explain_claim(id, before, after, look)?;
                // A database that was restored may say that an instance is where it was then.
                if self.aged.contains(&id) {
                    return Ok(());
                }
                explain_settled(before, after, look)
            }
            (None, None) => Ok(()),
        }
    }

    fn explain_new(&self, new: &Known, look: &Look<'_>) -> Result<(), Wrong> {
        let (owner, size) = (new.row.owner, new.row.size);
        let asked = self.is_asked(|asked| *asked == Ask::Create { owner, size });
        check(asked, || "it is new, and nobody asked for it".to_owned())?;
        // People read the time of the system's clock, whatever Wharf's own says.
        let right = new.row.created_at == look.app.clock().system();
        check(right, || {
            format!("its creation is at {:?}", new.row.created_at)
        })
    }

    /// Whether the operator gives up what an instance holds without a look at its node.
    fn given_up(&self, id: InstanceId, known: &Known) -> bool {
        let nodes = [
            Some(&known.row.node),
            known.moving.as_ref().map(|moving| &moving.claim.node),
        ];
        self.is_asked(|asked| match asked {
            Ask::Forget(of) => *of == id,
            Ask::Lose(node) => nodes.contains(&Some(node)),
            _ => false,
        })
    }

    fn explain_intent(
        &self,
        id: InstanceId,
        before: &Known,
        after: &Known,
        look: &Look<'_>,
    ) -> Result<(), Wrong> {
        let (from, to) = (before.row.intent, after.row.intent);
        if from == to {
            return Ok(());
        }
        let of = |asked: &Ask| asked.instance() == Some(id);
        let node = &before.row.node;
        let explained = match to {
            Intent::Delete => self.is_asked(|asked| of(asked) && matches!(asked, Ask::Delete(_))),
            Intent::Start => self.is_asked(|asked| *asked == Ask::Start(id)),
            // The node takes a start that was asked for, or a move ends, or a suspension.
            Intent::Run => {
                from == Intent::Start
                    || before.moving.is_some()
                    || self.is_asked(|asked| *asked == Ask::Rescue(node.clone()))
                    || self.is_asked(|asked| matches!(asked, Ask::Resume(of) | Ask::Recreate(of) | Ask::Start(of) if *of == id))
            }
            Intent::Stop => {
                from == Intent::Start
                    || self.is_asked(|asked| matches!(asked, Ask::Stop(of) | Ask::Suspend(of) | Ask::Start(of) if *of == id))
                    || self.is_asked(|asked| *asked == Ask::SuspendUser(before.row.owner))
                    || self.accepted.contains(node)
                    || self.is_asked(|asked| matches!(asked, Ask::Accept(of) | Ask::Lose(of) if of == node))
                    || after.moving.is_some()
                    || before.moving.is_some()
                    // A new instance that is not reachable in time has failed.
                    || !before.row.provisioned && after.row.failed
                    // Only its end in the world remains as a reason. It must be later than the proof that it was up.
                    || look.world.truth(|truth| truth.last_down((id, before.row.incarnation))) >= before.up_since
            }
        };
        let explained = explained && from != Intent::Delete || self.given_up(id, before);
        check(explained, || {
            format!("its intent is {to:?} after {from:?}, without a reason")
        })
    }

    fn explain_row(&self, id: InstanceId, before: &Known, after: &Known) -> Result<(), Wrong> {
        let (old, new) = (&before.row, &after.row);
        let is_kept = old.owner == new.owner
            && old.rates == new.rates
            && old.created_at == new.created_at
            && old.password == new.password;
        check(is_kept, || {
            "its owner, rates, password or time of creation changed".to_owned()
        })?;
        let counters = old.generation <= new.generation
            && old.incarnation <= new.incarnation
            && old.events <= new.events
            && old.ledger_entries <= new.ledger_entries;
        check(counters, || "a counter went back".to_owned())?;
        check(
            old.intent == new.intent
                || old.generation < new.generation
                || new.intent == Intent::Run,
            || "its intent changed without a new generation".to_owned(),
        )?;
        let resized = old.size == new.size
            || self.is_asked(|asked| matches!(asked, Ask::Change { id: of, size: Some(size), .. } if *of == id && *size == new.size));
        check(resized, || {
            format!("its size is {:?}, which nobody asked for", new.size)
        })?;
        let renamed = old.name == new.name
            || self.is_asked(|asked| matches!(asked, Ask::Change { id: of, name: Some(name), .. } if *of == id && *name == new.name.as_str()));
        check(renamed, || {
            format!("its name is {}, which nobody asked for", new.name.as_str())
        })?;
        let opened =
            old.wan_ports == new.wan_ports || self.is_asked(|asked| *asked == Ask::Ports(id));
        check(opened, || {
            "its open ports changed, and nobody asked for it".to_owned()
        })
    }

    fn explain_claim(
        &self,
        id: InstanceId,
        before: &Known,
        after: &Known,
        look: &Look<'_>,
    ) -> Result<(), Wrong> {
        let Some(old) = &before.claim else {
            return Ok(());
        };
        if self.given_up(id, before) {
            return Ok(());
        }
        let Some(new) = &after.claim else {
            // One that was lost, and whose content does not come, is lost as before.
            let raised =
                before.row.incarnation > 1 && after.row.incarnation > before.row.incarnation;
            let is_lost = raised && after.row.failed && !before.row.provisioned;
            return check(is_lost, || {
                "its claim is gone, and its row is not".to_owned()
            });
        };
        look.world.truth(|truth| {
            if allocations(old) != allocations(new) {
                if after.row.incarnation == before.row.incarnation {
                    let moved = before.moving.is_some() && old.node != new.node;
                    check(moved, || {
                        "its addresses changed without a new incarnation".to_owned()
                    })?;
                }
                // A move takes the object with it, and a new incarnation leaves none behind.
                if after.row.incarnation == before.row.incarnation {
                    has_none(truth, before, |node| *node == old.node)?;
                } else {
                    // A machine of a late call has the earlier incarnation, and is removed as an orphan.
                    has_none(truth, before, |_| true)?;
                }
            }
            // The node may have a size that a database of an earlier moment does not know.
            let is_aged = self.aged.contains(&id);
            if (old.size != new.size || !old.compute) && !is_aged {
                // A machine that runs has no more than its claim.
                let key = (id, after.row.incarnation);
                let mut machines = truth
                    .machines_of(id)
                    .filter(|(_, of, machine)| *of == key && machine.runs());
                let fits = machines.all(|(_, _, machine)| machine.size.max(new.size) == new.size);
                check(fits || !new.compute || truth.is_sized_late(key), || {
                    "its claim is smaller than its machine".to_owned()
                })?;
            }
            if old.compute && !new.compute {
                let key = (id, before.row.incarnation);
                let mut machines = truth.machines_of(id);
                let runs = machines.any(|(_, of, machine)| of == key && machine.runs());
                // The operator says that a machine which the engine does not show is gone.
                let is_gone = self.accepted.contains(&old.node);
                check(!runs || is_gone || truth.came_late(key), || {
                    "its compute was freed while it runs".to_owned()
                })?;
            }
            Ok(())
        })
    }

    /// Checks that an instance did not count as absent from a store that has it, nor as dead because its node booted:
    /// it is to run again then.
    fn explain_end(&self, before: &Known, after: &Known, look: &Look<'_>) -> Result<(), Wrong> {
        let (id, new) = (
            after.row.id,
            after.row.events.saturating_sub(before.row.events),
        );
        let events = look.app.db().read(|rows| rows.events(id));
        let events = events.map_err(|error| failed(&error))?.into_iter().rev();
        let events: Vec<_> = events.take(new as usize).collect();
        let is_absent = events.iter().any(|event| match &event.what {
            EventKind::Died(why) | EventKind::RestartFailed(why) => {
                why == ABSENT || *why == PluginError::NotFound.to_string()
            }
            _ => false,
        });
        let key = (id, after.row.incarnation);
        let has_it = |truth: &mut Truth<'_>| {
            let node = truth.nodes().find(|node| node.setup.name == after.row.node);
            let is_there = node.is_some_and(|node| node.own().machines.contains_key(&key));
            is_there && !truth.ever_came_late(key)
        };
        check(!is_absent || !look.world.truth(has_it), || {
            "it counts as absent, and its node has it".to_owned()
        })?;
        let node = &before.row.node;
        // An empty store that the operator accepted is a proven death.
        let is_accepted = self.accepted.contains(node)
            || self.is_asked(|asked| matches!(asked, Ask::Accept(of) if of == node));
        let died = events.iter().any(|event| match &event.what {
            EventKind::Died(why) => !is_accepted || why != ACCEPTED_WITHOUT,
            _ => false,
        });
        let is_of_node = MachineState::Stopped(Some(BOOTED.to_owned()));
        let booted = |truth: &mut Truth<'_>| {
            truth
                .machines_of(id)
                .any(|(_, _, machine)| machine.state == is_of_node)
        };
        check(!died || !look.world.truth(booted), || {
            "it counts as dead, and its node has booted".to_owned()
        })
    }
}

/// What only one instance can have.
fn allocations(claim: &Claim) -> impl PartialEq + use<> {
    let Claim {
        node,
        ssh_port,
        web_port,
        lan_ipv4,
        public_ipv4,
        ..
    } = claim.clone();
    (node, ssh_port, web_port, lan_ipv4, public_ipv4)
}

/// Checks that the world has no machine of an instance, and that no call under way can make one.
fn is_free(truth: &Truth<'_>, of: &Known) -> Result<(), Wrong> {
    has_none(truth, of, |_| true)?;
    check(!truth.may_appear((of.row.id, of.row.incarnation)), || {
        "its claim was dropped while a call that makes it is under way".to_owned()
    })
}

/// Checks that these nodes have no machine of an instance.
fn has_none(truth: &Truth<'_>, of: &Known, on: impl Fn(&NodeId) -> bool) -> Result<(), Wrong> {
    let key: MachineKey = (of.row.id, of.row.incarnation);
    let mut machines = truth.machines_of(key.0);
    let there = machines.find(|(node, found, _)| *found == key && on(node));
    match there.filter(|_| !truth.came_late(key)) {
        Some((node, ..)) => Err(format!(
            "its claim was dropped while node {node} has its machine"
        )),
        None => Ok(()),
    }
}

/// The reason of an end of an instance that its node does not have.
const ABSENT: &str = "the engine no longer has the instance";

/// The reason of an end that the operator has accepted.
const ACCEPTED_WITHOUT: &str = "absent from the engine that the operator accepted";

/// Checks that an instance that is up is what its row says.
fn explain_settled(before: &Known, after: &Known, look: &Look<'_>) -> Result<(), Wrong> {
    let row = &after.row;
    let is_stopped = row.intent == Intent::Stop && row.progress == Progress::Settled;
    let holds = after.claim.as_ref().is_some_and(|claim| claim.compute);
    check(!(is_stopped && holds), || {
        "it counts as stopped, and its compute is claimed".to_owned()
    })?;
    if !after.is_up() || before.is_up() && before.row.generation == row.generation {
        return Ok(());
    }
    debug_assert!(row.progress == Progress::Settled);
    let key = (row.id, row.incarnation);
    look.world.truth(|truth| {
        let mut machines = truth.machines_of(row.id);
        let machine = machines.find(|(node, found, _)| *found == key && **node == row.node);
        let Some((_, _, machine)) = machine else {
            return Err("it counts as up, and its node has no machine".to_owned());
        };
        check(
            machine.ports.contains(&row.ssh_port) && machine.address == row.lan_ipv4,
            || "its machine has other ports or addresses than its row".to_owned(),
        )
    })
}

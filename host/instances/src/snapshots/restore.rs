//! `restore/`: the disk of a stopped instance becomes that of a snapshot of it. The reconciler does it after the
//! answer; a restart meanwhile waits.

use super::read::own;
use super::rows::{RESTORES, RestoreRow, refuse_restoring};
use crate::{App, InstanceView, moves, suspension};
use wharf_db::{Changes, INSTANCES, Read as _, Rows as _};
use wharf_domain::error::Error;
use wharf_domain::event::EventKind;
use wharf_domain::instance::Intent;
use wharf_domain::kept::KeptStatus;
use wharf_domain::state::InstanceState;
use wharf_ground::audit::record;
use wharf_ground::caller::Caller;

impl App {
    /// Restores an instance from one of its snapshots, which the reconciler does after the answer. With
    /// `snapshot_first`, a snapshot of the present disk is taken before.
    pub async fn restore(
        &self,
        caller: &Caller,
        named: &str,
        snapshot_first: bool,
    ) -> Result<InstanceView, Error> {
        let (owner, named, origin) = (caller.user, named.to_owned(), caller.origin());
        let taking = self.taking()?;
        let decided = self.change(caller, "instance.restore", move |view| {
            let snapshot = own(view.rows, owner, &named)?;
            let instance = view.rows.get(&INSTANCES, snapshot.of.instance)?;
            let mut instance = instance.ok_or(Error::NotFound)?;
            suspension::check(view.rows, &instance)?;
            moves::check(view.rows, &instance)?;
            let state = instance.state();
            if state != InstanceState::Exited {
                return Err(Error::State {
                    verb: "restore",
                    state,
                    needed: "exited",
                });
            }
            refuse_restoring(view.rows, instance.id)?;
            // The disk before counts as the present one only once the node has stopped the instance.
            let claim = view.rows.claim(instance.id)?;
            let stops = snapshot_first && claim.is_some_and(|claim| claim.compute);
            if instance.intent == Intent::Start || instance.resize.is_some() || stops {
                return Err(Error::NotApplicable(
                    "an earlier change of this instance is still under way; try again shortly",
                ));
            }
            if snapshot.status() != KeptStatus::Ready {
                let (name, status) = (&snapshot.name, snapshot.status().as_str());
                return Err(Error::Refused(format!(
                    "the state of snapshot {name} is {status}"
                )));
            }
            if snapshot.node != instance.node || snapshot.of.incarnation != instance.incarnation {
                return Err(Error::NotApplicable(
                    "the snapshot is of an earlier disk of the instance, whose host was lost",
                ));
            }
            let mut changes = Changes::none();
            let mut first = None;
            if snapshot_first {
                let (taken, taking) = taking.take(view, &instance, None, None)?;
                first = Some(taken.id);
                let (name, operation) = (taken.name.as_str(), "snapshot.create");
                let audited = record(view, &origin, operation, Some(owner), name, "creating");
                changes = taking.by(&origin).with(audited);
            }
            let restore = RestoreRow {
                snapshot: snapshot.id,
                first,
            };
            instance.intend(Intent::Stop, None);
            let what = EventKind::Restoring(format!("from snapshot {}", snapshot.name));
            let id = instance.id;
            let changes = changes
                .put(&RESTORES, id, restore)
                .record(instance, view.now, what);
            Ok((changes.instance()?, changes))
        });
        let instance = decided.await.map_err(|error| self.with_freeing(error))?;
        self.nodes.work_on_snapshots(&instance.node);
        self.nudge(caller, instance.id).await;
        Ok(self.view(caller, instance))
    }
}

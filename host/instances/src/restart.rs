//! `restart/`: claims compute resources again on the node that has the disk, and takes effect once the
//! node has taken the start. Until then the instance is stopped and not billed.

use super::find::{Selector, find};
use super::volumes::{Usable, usable};
use super::waiters::Waiter;
use super::{App, InstanceCondition, InstanceView, moves, quota, suspension};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use wharf_db::{Changes, INSTANCES, Read as _, Rows as _, Table, View, tables};
use wharf_domain::audit::{AuditRecord, Origin};
use wharf_domain::error::Error;
use wharf_domain::event::EventKind;
use wharf_domain::ids::InstanceId;
use wharf_domain::instance::{Instance, Intent, Progress};
use wharf_domain::state::InstanceState;
use wharf_ground::caller::Caller;

tables! {
    /// Starts that nodes have not taken.
    pub const STARTS: Table<(), InstanceId, StartRow> =
        Table::part_of(&INSTANCES, b'x', 3);
}

/// A start that the node has not taken yet, or a withdrawn start that the node may still take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartRow {
    /// The request.
    pub origin: Origin,
    /// The start claimed the compute, which was free before.
    pub claimed: bool,
}

/// The operation in the audit log.
const OPERATION: &str = "instance.restart";

/// The results of refused starts in the audit log.
const AWAY: &str = "refused: the node is out of reach";
const NOT_TAKEN: &str = "refused: the node did not take the start";
const NO_ROOM: &str = "refused: the node lacks resources";

impl App {
    /// Starts a stopped instance, and waits for a limited time until it is reachable. Fails if the node
    /// has not taken the start by then.
    pub async fn restart(
        &self,
        caller: &Caller,
        selector: &Selector,
        condition: &InstanceCondition,
    ) -> Result<InstanceView, Error> {
        let owner = caller.user;
        let (id, node) = self.db.read(|rows| {
            let instance = find(rows, owner, selector)?;
            Ok((instance.id, instance.node))
        })?;
        let target = self.target(caller, &Selector::Id(id), condition);
        let (inventory, defaults) = (self.inventory.clone(), self.config().quota.limits());
        let bound = Duration::from_millis(self.config().limits.answer_wait_ms);
        let (origin, away) = (caller.origin(), self.nodes.is_away(&node));
        let waiting = self.waiters.enter(id);
        let decided = self.db.write(move |view| {
            let mut instance = target.find(view.rows)?;
            suspension::check(view.rows, &instance)?;
            moves::check(view.rows, &instance)?;
            let state = instance.state();
            if !matches!(state, InstanceState::ShutOff | InstanceState::Exited) {
                return Err(Error::State {
                    verb: "restart",
                    state,
                    needed: "shut_off or exited",
                });
            }
            let unusable = match usable(view.rows, id)? {
                Usable::No(name) => Some(format!(
                    "volume {name} of this instance is in the state error"
                )),
                Usable::Copied(name) => Some(format!(
                    "a backup of volume {name} is running, which this instance would write; wait for its end, or \
                     delete the backup"
                )),
                Usable::Yes | Usable::Soon => None,
            };
            if let Some(text) = unusable {
                return Err(Error::Refused(text));
            }
            if instance.intent == Intent::Start {
                // An earlier request started it; both get one answer.
                return Ok((Some(instance), Changes::none()));
            }
            let claim = view.rows.claim(id)?;
            let mut claim = claim.ok_or_else(|| Error::internal(format!("{id} has no claim")))?;
            let held = claim.compute;
            if held {
                // A stop in progress still holds its claim, and the restart keeps it.
                inventory.check_gpus(&claim)?
            } else {
                let limits = quota::limits(view.rows, owner, defaults)?;
                quota::reclaim(&inventory, limits, &claim)?;
                inventory.reclaim(&claim)?;
            }
            if away {
                let refused = record(&instance, view, origin.clone(), AWAY);
                return Ok((None, Changes::none().with(refused)));
            }
            let withdrawn = view.rows.get(&STARTS, id)?;
            let start = StartRow {
                origin: origin.clone(),
                claimed: !held || withdrawn.is_some_and(|earlier| earlier.claimed),
            };
            claim.compute = true;
            instance.intend(Intent::Start, Some(view.now.plus(bound)));
            let changes = Changes::none()
                .put_claim(id, claim)
                .put(&STARTS, id, start)
                .put_instance(instance);
            Ok((Some(changes.instance()?), changes))
        });
        let decided = decided.await.map_err(|error| self.with_freeing(error));
        let Some(started) = decided? else {
            return Err(Error::NodeUnreachable(self.nodes.state(&node).to_string()));
        };
        self.nudge(caller, id).await;
        waiting.until(bound, || self.is_settled(&started)).await;
        self.withdraw_start(caller, &started).await?;
        self.started(caller, &started, &waiting)
    }

    /// Ends a start that the node has not taken in time.
    async fn withdraw_start(&self, caller: &Caller, started: &Instance) -> Result<(), Error> {
        let (id, generation) = (started.id, started.generation);
        let waits =
            move |row: &Instance| row.generation == generation && row.intent == Intent::Start;
        if !self
            .db
            .read(|rows| rows.instance(id))?
            .is_some_and(|row| waits(&row))
        {
            return Ok(());
        }
        let decided = self
            .db
            .write_essential(move |view| match view.rows.instance(id)? {
                Some(row) if waits(&row) => Ok((true, refuse(row, view, NOT_TAKEN)?)),
                _ => Ok((false, Changes::none())),
            });
        if decided.await? {
            self.nudge(caller, id).await;
        }
        Ok(())
    }

    /// The answer to a restart, once its start was taken or refused.
    fn started(
        &self,
        caller: &Caller,
        started: &Instance,
        waiting: &Waiter<'_>,
    ) -> Result<InstanceView, Error> {
        let id = started.id;
        let since = usize::try_from(started.events).unwrap_or(usize::MAX);
        let (now, events) = self.db.read(|rows| {
            let now = find(rows, caller.user, &Selector::Id(id))?;
            Ok((now, rows.events(id)?))
        })?;
        let mut taken = false;
        for event in events.into_iter().skip(since) {
            taken |= event.what == EventKind::Restarted;
            if let Some(error) = failure(event.what) {
                return Err(error);
            }
        }
        if taken {
            return Ok(self.view(caller, now));
        }
        let refusal = waiting.refusal(started.generation).and_then(failure);
        Err(refusal.unwrap_or_else(|| {
            if self.nodes.is_away(&now.node) {
                Error::NodeUnreachable(self.nodes.state(&now.node).to_string())
            } else {
                Error::NotStarted("the node did not take the start in time".to_owned())
            }
        }))
    }
}

fn failure(what: EventKind) -> Option<Error> {
    match what {
        EventKind::RestartFailed(why) | EventKind::RestoreFailed(why) => {
            Some(Error::NotStarted(why))
        }
        EventKind::RestartShort(short) => Some(Error::Insufficient(short.into())),
        _ => None,
    }
}

/// Takes a start back that the node has not taken. The instance never ran for its user, so that no event
/// and no bill have it. The node may still carry out a late start, which the reconciler undoes before it
/// frees the compute.
pub(super) fn refuse(
    mut row: Instance,
    view: &View<'_>,
    result: &'static str,
) -> Result<Changes, Error> {
    let audited = audit_refusal(&row, view, result)?;
    row.intend(Intent::Stop, None);
    let changes = Changes::none().put_instance(row);
    Ok(audited.into_iter().fold(changes, Changes::with))
}

/// The audit record of a start that is taken back; none if the instance has no such start.
fn audit_refusal(
    row: &Instance,
    view: &View<'_>,
    result: &'static str,
) -> Result<Option<Changes>, Error> {
    let start = view.rows.get(&STARTS, row.id)?;
    Ok(start.map(|start| record(row, view, start.origin, result)))
}

/// The audit record of a start that is taken back for lack of room on its node.
pub(super) fn audit_no_room(row: &Instance, view: &View<'_>) -> Result<Option<Changes>, Error> {
    audit_refusal(row, view, NO_ROOM)
}

/// Takes a start back for this reason of the node.
pub(super) fn refuse_for(
    row: Instance,
    view: &View<'_>,
    why: &EventKind,
) -> Result<Changes, Error> {
    let result = match why {
        EventKind::RestartShort(_) => NO_ROOM,
        _ => NOT_TAKEN,
    };
    refuse(row, view, result)
}

/// Makes a start that the node has taken the intent.
pub(super) fn take(mut row: Instance, view: &View<'_>) -> Result<Changes, Error> {
    let start = view.rows.get(&STARTS, row.id)?;
    row.intent = Intent::Run;
    row.progress = Progress::Pending;
    let changes =
        Changes::none()
            .remove(&STARTS, row.id)
            .record(row, view.now, EventKind::Restarted);
    Ok(match start {
        Some(start) => changes.audited(&start.origin, OPERATION, view.now),
        None => changes,
    })
}

fn record(row: &Instance, view: &View<'_>, origin: Origin, result: &str) -> Changes {
    Changes::none().audit(AuditRecord {
        at: view.system,
        origin,
        operation: OPERATION.to_owned(),
        owner: Some(row.owner),
        instance: Some(row.id),
        subject: None,
        result: result.to_owned(),
    })
}

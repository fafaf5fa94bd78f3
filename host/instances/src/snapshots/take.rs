//! `POST` of a snapshot, and the decision that a plan shares: one write with name, claim, row, event and ledger
//! entry. The reconciler takes the snapshot after the answer.

use super::SnapshotView;
use super::rows::{refuse_restoring, snapshots_of};
use crate::find::{Selector, find};
use crate::idempotency::IdempotentRow as _;
use crate::kept::next_seq;
use crate::{App, IdempotencyKey, SharedInventory, moves, quota, suspension};
use std::collections::BTreeMap;
use std::sync::Arc;
use wharf_config::Config;
use wharf_db::{Changes, Rows as _, SNAPSHOTS_OWNED, View};
use wharf_domain::driver::SnapshotKind;
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::ids::{NodeId, SnapshotId};
use wharf_domain::instance::{Instance, Intent, Progress, ResourceType};
use wharf_domain::kept::{KeptEvent, KeptKind as _};
use wharf_domain::name::Name;
use wharf_domain::snapshot::{MAX_SNAPSHOTS, OfSnapshot, Snapshot};
use wharf_domain::state::InstanceState;
use wharf_domain::time::Timestamp;
use wharf_ground::audit::record;
use wharf_ground::caller::Caller;

/// The names that are tried for a snapshot without one.
const NAME_TRIES: usize = 2 * MAX_SNAPSHOTS;

/// How a node takes snapshots.
#[derive(Debug, Clone)]
pub(crate) struct Taker {
    engine: String,
    /// `None` until its driver has said so.
    pub kind: Option<SnapshotKind>,
}

/// The inputs of a decision about a snapshot, beside the rows.
pub struct Taking {
    pub(crate) id: SnapshotId,
    inventory: SharedInventory,
    config: Arc<Config>,
    takers: BTreeMap<NodeId, Taker>,
}

impl App {
    /// Prepares a decision about a new snapshot.
    pub fn taking(&self) -> Result<Taking, Error> {
        let takers = self.drivers.iter().map(|(node, driver)| {
            let kind = self.nodes.features(node).map(|features| features.snapshots);
            let engine = driver.engine_kind().to_owned();
            (node.clone(), Taker { engine, kind })
        });
        Ok(Taking {
            id: SnapshotId(self.random.id(self.clock.system())?),
            inventory: self.inventory.clone(),
            config: self.config(),
            takers: takers.collect(),
        })
    }

    /// Accepts a snapshot of one of the caller's instances. If an earlier request with the idempotency key took
    /// one, returns that one as it was then.
    pub async fn take_snapshot(
        &self,
        caller: &Caller,
        selector: &Selector,
        name: Option<Name>,
        key: Option<IdempotencyKey>,
    ) -> Result<SnapshotView, Error> {
        let (owner, origin) = (caller.user, caller.origin());
        let (taking, selector) = (self.taking()?, selector.clone());
        let decide = move |view: &View<'_>| {
            let instance = find(view.rows, owner, &selector)?;
            let (snapshot, changes) = taking.take(view, &instance, name.clone(), None)?;
            let changes = changes.by(&origin);
            let subject = format!("{} of {}", snapshot.name, instance.name);
            let operation = "snapshot.create";
            let audited = record(view, &origin, operation, Some(owner), &subject, "creating");
            Ok((snapshot, changes.with(audited)))
        };
        let decided = self
            .db
            .write(move |view| IdempotencyKey::once(key.as_ref(), view, owner, || decide(view)));
        let snapshot = decided.await.map_err(|error| self.with_freeing(error))?;
        self.nodes.work_on_snapshots(&snapshot.node);
        snapshot.new_view(self, caller)
    }
}

impl Taking {
    /// Fails unless a snapshot of the instance can be taken now, whatever its size and number. Returns how its
    /// node does it.
    pub fn check(&self, view: &View<'_>, instance: &Instance) -> Result<SnapshotKind, Error> {
        suspension::check(view.rows, instance)?;
        let kind = self.check_engine(instance)?;
        moves::check(view.rows, instance)?;
        let state = instance.state();
        if !matches!(state, InstanceState::Running | InstanceState::Exited) {
            return Err(Error::State {
                verb: "take a snapshot of",
                state,
                needed: "running or exited",
            });
        }
        // The disk has the files of its first start, secrets among them, which a clone would take for its own.
        if !instance.provisioned {
            return Err(Error::NotApplicable(
                "this instance was stopped before its first start had ended; restart it first",
            ));
        }
        refuse_restoring(view.rows, instance.id)?;
        let starts = instance.intent == Intent::Start
            || instance.intent == Intent::Run && instance.progress == Progress::Pending;
        if starts || instance.resize.is_some() {
            return Err(Error::NotApplicable(
                "an earlier change of this instance is still under way; try again shortly",
            ));
        }
        Ok(kind)
    }

    /// Fails unless the engine of the instance takes snapshots of such instances.
    pub(crate) fn check_engine(&self, instance: &Instance) -> Result<SnapshotKind, Error> {
        if instance.resource_type == ResourceType::Vm {
            return Err(Error::NotApplicable(
                "snapshots can be taken of containers only; this instance is a VM",
            ));
        }
        match self.takers.get(&instance.node) {
            Some(Taker {
                engine,
                kind: Some(SnapshotKind::None),
            }) => Err(Error::Refused(format!(
                "the engine of this instance ({engine}) takes no snapshots"
            ))),
            Some(Taker {
                kind: Some(kind), ..
            }) => Ok(*kind),
            _ => Err(Error::NodeUnreachable(format!(
                "node {} was not in reach yet",
                instance.node
            ))),
        }
    }

    /// Decides about a snapshot, by hand or by a plan at this time.
    pub fn take(
        &self,
        view: &View<'_>,
        instance: &Instance,
        name: Option<Name>,
        planned: Option<Timestamp>,
    ) -> Result<(Snapshot, Changes), Error> {
        self.check(view, instance)?;
        let mut others = snapshots_of(view.rows, instance.id)?;
        others.retain(|other| !other.deleted);
        // The new one of a plan comes before its oldest one goes.
        let most = MAX_SNAPSHOTS + usize::from(planned.is_some());
        if others.len() >= most {
            let text =
                format!("an instance has at most {MAX_SNAPSHOTS} snapshots; delete one first");
            return Err(Error::Refused(text));
        }
        let taken = |name: &Name| others.iter().any(|other| other.name == *name);
        let name = match name {
            Some(name) if taken(&name) => {
                return Err(FieldErrors::one("name", "is already taken").into());
            }
            Some(name) => name,
            None => free_name(view.system, taken)?,
        };
        let (owner, size_gib) = (instance.owner, instance.size.disk_size_gib);
        let limits = quota::limits(view.rows, owner, self.config.quota.limits())?;
        quota::kept(&self.inventory, limits, owner, OfSnapshot::usage(size_gib))?;
        let free = self.inventory.free_disk(&instance.node);
        if free < size_gib {
            let short = ("disk_size_gib", size_gib.into(), free.into());
            return Err(Error::Insufficient(vec![short].into()));
        }
        let last = view.rows.last_under(&SNAPSHOTS_OWNED, &owner)?;
        let snapshot = Snapshot {
            id: self.id,
            seq: next_seq(last.map(|(last, _)| last), view.now),
            owner,
            name,
            size_gib,
            cpu_tier: instance.cpu_tier,
            created_at: view.system,
            rate: self.config.rates.rates(instance.cpu_tier, None).disk,
            node: instance.node.clone(),
            deleted: false,
            made: false,
            failure: None,
            events: 0,
            ledger_entries: 0,
            last_event_at: view.now,
            billed: false,
            of: OfSnapshot {
                instance: instance.id,
                incarnation: instance.incarnation,
                flavor: instance.flavor.clone(),
                disk_size_gib: size_gib,
                bytes: None,
                clonable: false,
                planned,
                ready_at: None,
            },
        };
        let what = planned.map_or(KeptEvent::Created, |_| KeptEvent::Planned);
        let changes = Changes::none().record_kept(snapshot.clone(), view.now, what);
        Ok((snapshot, changes))
    }
}

/// A name with the time.
fn free_name(at: Timestamp, taken: impl Fn(&Name) -> bool) -> Result<Name, Error> {
    let digits: String = at
        .to_rfc3339()
        .chars()
        .filter(char::is_ascii_digit)
        .collect();
    let (day, rest) = digits.split_at_checked(8).unwrap_or((&digits, ""));
    let second = rest.get(..6).unwrap_or(rest);
    for n in 1..=NAME_TRIES {
        let more = if n == 1 {
            String::new()
        } else {
            format!("-{n}")
        };
        let name =
            Name::parse(&format!("snapshot-{day}-{second}{more}")).map_err(Error::internal)?;
        if !taken(&name) {
            return Ok(name);
        }
    }
    Err(Error::internal("no free name of a snapshot"))
}

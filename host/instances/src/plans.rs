//! Plans of instances and volumes: snapshots and backups that Wharf's own clock makes. The rows have the due times, so that a run
//! that is late is made once, also after a start of Wharf.

use crate::App;
use crate::find::{Selector, find};
use crate::kept::KeptUse as _;
use crate::reconciler::supervise;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::Duration;
use tokio::time::sleep;
use wharf_db::{Changes, KeyPart, Read, Rows as _, Table, TableRow, VOLUMES, View};
use wharf_domain::error::Error;
use wharf_domain::event::EventKind;
use wharf_domain::ids::{Generation, InstanceId, NodeId, UserId, VolumeId};
use wharf_domain::instance::{Instance, Intent, Progress};
use wharf_domain::kept::{KeptEvent, KeptStatus};
use wharf_domain::snapshot::PlanRequest;
use wharf_domain::state::InstanceState;
use wharf_domain::time::Timestamp;
use wharf_domain::volume::{OfVolume, Volume};
use wharf_ground::caller::Caller;

/// How often it looks for due plans.
const TICK: Duration = Duration::from_secs(5);
const HOUR: Duration = Duration::from_hours(1);
/// The milliseconds of a day.
const DAY: u64 = 86_400_000;

/// A plan, with the time of its next run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanRow<R> {
    pub request: R,
    /// By the system's clock.
    pub created_at: Timestamp,
    /// Time from which the due times count, by Wharf's own clock.
    pub from: Timestamp,
    /// Time of the next run, by Wharf's own clock.
    pub next: Timestamp,
    /// Generation of the instance at the last run, if it was stopped then. A volume has none.
    pub idle: Option<Generation>,
    /// Time of the last refusal of a run that is still due, by Wharf's own clock. The owner was told of the first.
    pub refused: Option<Timestamp>,
}

impl<R: AsRef<PlanRequest>> PlanRow<R> {
    fn every(&self) -> Duration {
        HOUR * self.request.as_ref().every_h.max(1)
    }

    /// Whether it has a run to try. After a refusal that does not pass by itself, there is a try in an hour.
    fn is_due(&self, now: Timestamp) -> bool {
        self.next <= now && self.refused.is_none_or(|at| at.plus(HOUR) <= now)
    }

    /// The last due time up to the present one. Those before it are not made up for.
    fn latest(&self, now: Timestamp) -> Timestamp {
        let every = self.every();
        let passed = u128::from(now.millis_since(self.from)) / every.as_millis();
        self.from
            .plus(every * u32::try_from(passed).unwrap_or(u32::MAX))
    }
}

/// A plan as its owner sees it, with times of the system's clock.
#[derive(Debug, Clone)]
pub struct PlanView<R> {
    pub request: R,
    pub created_at: Timestamp,
    pub next_at: Timestamp,
}

/// A thing that plans are of.
pub trait Planned: Clone + Send + Sync + 'static {
    type Id: KeyPart + Copy + Ord + Display + Sync;
    /// The words of its user for it.
    type Named: Clone + Send + Sync + 'static;
    type Event;

    /// One of a user's.
    fn find(rows: &impl Read, owner: UserId, named: &Self::Named) -> Result<Self, Error>;
    /// The one with an id, unless it is being deleted.
    fn present(rows: &impl Read, id: Self::Id) -> Result<Option<Self>, Error>;
    fn id(&self) -> Self::Id;
    /// Its generation, if nothing changes its content in this generation.
    fn idle(&self) -> Option<Generation>;
    fn is_in_error(&self) -> bool;
    fn record(self, changes: Changes, now: Timestamp, what: Self::Event) -> Changes;
}

impl Planned for Instance {
    type Id = InstanceId;
    type Named = Selector;
    type Event = EventKind;

    fn find(rows: &impl Read, owner: UserId, named: &Selector) -> Result<Self, Error> {
        find(rows, owner, named)
    }

    fn present(rows: &impl Read, id: InstanceId) -> Result<Option<Self>, Error> {
        let row = rows.instance(id)?;
        Ok(row.filter(|row| row.intent != Intent::Delete))
    }

    fn id(&self) -> InstanceId {
        self.id
    }

    fn idle(&self) -> Option<Generation> {
        let is_idle = self.intent == Intent::Stop && self.progress == Progress::Settled;
        is_idle.then_some(self.generation)
    }

    fn is_in_error(&self) -> bool {
        self.state() == InstanceState::Error
    }

    fn record(self, changes: Changes, now: Timestamp, what: EventKind) -> Changes {
        changes.record(self, now, what)
    }
}

impl Planned for Volume {
    type Id = VolumeId;
    type Named = String;
    type Event = KeptEvent;

    fn find(rows: &impl Read, owner: UserId, named: &String) -> Result<Self, Error> {
        OfVolume::own(rows, owner, named)
    }

    fn present(rows: &impl Read, id: VolumeId) -> Result<Option<Self>, Error> {
        let row = rows.get(&VOLUMES, id)?;
        Ok(row.filter(|row| !row.deleted))
    }

    fn id(&self) -> VolumeId {
        self.id
    }

    fn idle(&self) -> Option<Generation> {
        None
    }

    fn is_in_error(&self) -> bool {
        self.failure.is_some()
    }

    fn record(self, changes: Changes, now: Timestamp, what: KeptEvent) -> Changes {
        changes.record_kept(self, now, what)
    }
}

type Id<K> = <<K as PlanKind>::Of as Planned>::Id;
type Named<K> = <<K as PlanKind>::Of as Planned>::Named;
type Event<K> = <<K as PlanKind>::Of as Planned>::Event;

/// A kind of plans, with what they make.
pub trait PlanKind: Clone + Send + Sync + 'static {
    type Of: Planned;
    /// The part of a plan that its user sets.
    type Request: AsRef<PlanRequest> + PartialEq + Sync + TableRow;
    /// The inputs of a decision, beside the rows.
    type Making: Send + 'static;
    /// The name of the task in logs.
    const CLOCK: &'static str;
    /// The operations of the audit log.
    const SET: &'static str;
    const END: &'static str;
    /// The answer where there is no plan.
    const MISSING: Error;
    /// The refusal while the last one is not complete.
    const INCOMPLETE: Error;
    /// The event of an end of the plan.
    fn ended() -> Event<Self>;
    /// The event of a run that made nothing, for this reason.
    fn failed(why: String) -> Event<Self>;
    fn table() -> &'static Table<(), Id<Self>, PlanRow<Self::Request>>;
    fn app(&self) -> &App;
    fn making(&self) -> Result<Self::Making, Error>;
    /// Fails unless one can be made now, whatever its size and number.
    fn check(making: &Self::Making, view: &View<'_>, of: &Self::Of) -> Result<(), Error>;
    /// Makes one, on a node.
    fn make(
        making: &Self::Making,
        view: &View<'_>,
        of: &Self::Of,
        request: &Self::Request,
    ) -> Result<(NodeId, Changes), Error>;
    /// The state of the newest that plans of it have made.
    fn newest(view: &View<'_>, of: &Self::Of) -> Result<Option<KeptStatus>, Error>;
    /// Deletes those that a plan does not keep.
    fn retire(view: &View<'_>, of: &Self::Of, plan: &PlanRequest) -> Result<Changes, Error>;
    /// A run has ended, and may have begun work on a node.
    fn has_run(&self, node: Option<NodeId>);
}

/// Those that a plan does not keep, of all that plans of its kind have made of one thing, the newest first: each with the time of
/// its run, and whether it is complete or was never made. Only complete ones count, and the newest of these stays, so
/// that a new one is complete before an older one goes. Of those that were not made, the newest stays, for its reason.
pub fn surplus<T>(
    plan: &PlanRequest,
    newest_first: impl IntoIterator<Item = (Timestamp, bool, T)>,
    now: Timestamp,
) -> Vec<T> {
    let (kept, unmade): (Vec<_>, Vec<_>) = newest_first
        .into_iter()
        .partition(|(_, is_complete, _)| *is_complete);
    let most = usize::try_from(plan.keep).unwrap_or(usize::MAX).max(1);
    let days = plan.keep_days.map(u64::from);
    let is_old = |at: Timestamp| days.is_some_and(|days| now.millis_since(at) >= days * DAY);
    let later = kept.into_iter().enumerate().skip(1);
    let surplus = later.filter(|(n, (at, ..))| *n >= most || is_old(*at));
    let surplus = surplus.map(|(_, planned)| planned);
    let surplus = surplus.chain(unmade.into_iter().skip(1));
    surplus.map(|(_, _, row)| row).collect()
}

impl App {
    fn plan_view<R>(&self, plan: PlanRow<R>) -> PlanView<R> {
        let times = self.clock.times();
        let left = plan.next.0.saturating_sub(times.now.0).max(0);
        PlanView {
            request: plan.request,
            created_at: plan.created_at,
            next_at: Timestamp(times.system.0.saturating_add(left)),
        }
    }

    /// Returns the plan of one of the caller's instances or volumes.
    pub fn plan<K: PlanKind>(
        &self,
        caller: &Caller,
        named: &Named<K>,
    ) -> Result<PlanView<K::Request>, Error> {
        let plan = self.db.read(|rows| {
            let of = K::Of::find(rows, caller.user, named)?;
            rows.get(K::table(), ((), of.id()))
        })?;
        Ok(self.plan_view(plan.ok_or(K::MISSING)?))
    }

    /// Sets the plan of an instance or a volume to a request, with the event of it. The one that it has stays as it
    /// is, with its times.
    pub async fn set_plan<K: PlanKind>(
        &self,
        caller: &Caller,
        named: &Named<K>,
        making: K::Making,
        request: impl Fn(&View<'_>) -> Result<(K::Request, Event<K>), Error> + Send + 'static,
    ) -> Result<PlanView<K::Request>, Error> {
        let (owner, named) = (caller.user, named.clone());
        let decided = self.change(caller, K::SET, move |view| {
            let of = K::Of::find(view.rows, owner, &named)?;
            let (request, set) = request(view)?;
            let key = ((), of.id());
            let present = view.rows.get(K::table(), key)?;
            if let Some(plan) = present.filter(|plan| plan.request == request) {
                return Ok((plan, Changes::none()));
            }
            K::check(&making, view, &of)?;
            let mut plan = PlanRow {
                request,
                created_at: view.system,
                from: view.now,
                next: view.now,
                idle: None,
                refused: None,
            };
            plan.next = plan.from.plus(plan.every());
            let changes = Changes::none().put(K::table(), key, plan.clone());
            Ok((plan, of.record(changes, view.now, set)))
        });
        Ok(self.plan_view(decided.await?))
    }

    /// Ends the plan of an instance or a volume. Its earlier results stay.
    pub async fn end_plan<K: PlanKind>(
        &self,
        caller: &Caller,
        named: &Named<K>,
    ) -> Result<(), Error> {
        let (owner, named) = (caller.user, named.clone());
        let decided = self.change_essential(caller, K::END, move |view| {
            let of = K::Of::find(view.rows, owner, &named)?;
            let key = ((), of.id());
            if view.rows.get(K::table(), key)?.is_none() {
                return Err(K::MISSING);
            }
            let changes = Changes::none().remove(K::table(), key);
            Ok(((), of.record(changes, view.now, K::ended())))
        });
        decided.await
    }
}

/// Carries out the plans of a kind. The task ends with this future.
pub async fn carry_out<K: PlanKind>(kind: K) {
    let start = || {
        let (kind, tried) = (kind.clone(), BTreeMap::new());
        Planner { kind, tried }.run()
    };
    supervise(K::CLOCK, start).await;
}

struct Planner<K: PlanKind> {
    kind: K,
    /// The due times of runs that this process has tried. One that is late was not.
    tried: BTreeMap<Id<K>, Timestamp>,
}

impl<K: PlanKind> Planner<K> {
    async fn run(mut self) {
        loop {
            if let Err(error) = self.look().await {
                tracing::error!(error = %error.chain(), "{} cannot look for due plans", K::CLOCK);
            }
            sleep(TICK).await;
        }
    }

    async fn look(&mut self) -> Result<(), Error> {
        let app = self.kind.app();
        let now = app.clock.now();
        let due: Vec<_> = app.db.read(|rows| {
            // A damaged row does not keep the others.
            let plans = rows.under(K::table(), &())?.filter_map(Result::ok);
            let due = plans.filter(|(_, plan)| plan.is_due(now));
            Ok(due.map(|(id, plan)| (id, plan.next)).collect())
        })?;
        self.tried
            .retain(|id, _| due.iter().any(|(other, _)| other == id));
        for (id, next) in due {
            let is_late = self.tried.insert(id, next) != Some(next);
            match self.make(id).await {
                Ok(node) => self.kind.has_run(node),
                // It is due until the service can write.
                Err(error @ (Error::Internal(_) | Error::Overloaded | Error::DiskFull)) => {
                    tracing::warn!(of = %id, error = %error.chain(), "{} cannot carry out a plan", K::CLOCK);
                }
                Err(error) => {
                    let (why, passes) = (words(&error), passes(&error));
                    self.refused(id, why, passes, is_late).await?;
                }
            }
        }
        Ok(())
    }

    /// Carries out a due plan, unless nothing has changed since the last time. Returns the node with new work.
    async fn make(&self, id: Id<K>) -> Result<Option<NodeId>, Error> {
        let making = self.kind.making()?;
        let decide = move |view: &View<'_>| {
            let Some((of, mut plan)) = due::<K>(view, id)? else {
                return Ok((None, Changes::none()));
            };
            let retired = K::retire(view, &of, plan.request.as_ref())?;
            let newest = K::newest(view, &of)?;
            let idle = of.idle();
            let is_unchanged = idle.is_some() && idle == plan.idle;
            plan.next = plan.latest(view.now).plus(plan.every());
            (plan.idle, plan.refused) = (idle, None);
            let changes = retired.rewrite(K::table(), ((), id), plan.clone());
            if of.is_in_error() || (is_unchanged && newest == Some(KeptStatus::Ready)) {
                return Ok((None, changes));
            }
            if newest == Some(KeptStatus::Creating) {
                return Err(K::INCOMPLETE);
            }
            let (node, made) = K::make(&making, view, &of, &plan.request)?;
            Ok((Some(node), changes.with(made)))
        };
        self.kind.app().db.write(decide).await
    }

    /// Notes that the plan makes nothing now. The run stays due until the next one is. Its owner is told once: at the
    /// end of that time, unless the run was late, or at once of a refusal that does not pass by itself.
    async fn refused(
        &self,
        id: Id<K>,
        why: String,
        passes: bool,
        is_late: bool,
    ) -> Result<(), Error> {
        let decide = move |view: &View<'_>| {
            let Some((of, mut plan)) = due::<K>(view, id)? else {
                return Ok(((), Changes::none()));
            };
            let last = plan.latest(view.now).max(plan.next);
            let is_over = last > plan.next;
            if passes && !is_over {
                return Ok(((), Changes::none()));
            }
            let was_told = plan.refused.is_some();
            let tells = if passes {
                !is_late && !was_told
            } else {
                is_over || !was_told
            };
            let mut changes = K::retire(view, &of, plan.request.as_ref())?;
            if tells {
                changes = of.record(changes, view.now, K::failed(why.clone()));
            }
            plan.refused = (!passes).then_some(view.now);
            plan.next = last;
            Ok(((), changes.rewrite(K::table(), ((), id), plan)))
        };
        self.kind.app().db.write_essential(decide).await
    }
}

/// An instance or a volume with its plan.
type Due<K> = (<K as PlanKind>::Of, PlanRow<<K as PlanKind>::Request>);

/// An instance or a volume with its plan, if that is due.
fn due<K: PlanKind>(view: &View<'_>, id: Id<K>) -> Result<Option<Due<K>>, Error> {
    let plan = view.rows.get(K::table(), ((), id))?;
    let of = K::Of::present(view.rows, id)?;
    Ok(of.zip(plan.filter(|plan| plan.is_due(view.now))))
}

/// Whether a refusal passes by itself.
fn passes(error: &Error) -> bool {
    matches!(
        error,
        Error::State { .. } | Error::NotApplicable(_) | Error::NodeUnreachable(_)
    )
}

/// A refusal in words for the owner.
fn words(error: &Error) -> String {
    match error {
        Error::Insufficient(_) => "the host lacks the room".to_owned(),
        Error::OverQuota(_) => "your quota does not allow it".to_owned(),
        Error::Fields(fields) => fields.to_string(),
        error => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::{PlanRow, surplus};
    use wharf_domain::snapshot::PlanRequest;
    use wharf_domain::time::Timestamp;

    const HOUR: i64 = 3_600_000;

    fn request(every_h: u32, keep: u32, keep_days: Option<u32>) -> PlanRequest {
        PlanRequest {
            every_h,
            keep,
            keep_days,
        }
    }

    #[test]
    fn due_times_count_from_the_creation_of_the_plan() {
        let plan = |every_h| PlanRow {
            request: request(every_h, 1, None),
            created_at: Timestamp(0),
            from: Timestamp(7),
            next: Timestamp(7),
            idle: None,
            refused: None,
        };
        let last = |every_h, now: i64| plan(every_h).latest(Timestamp(now)).0 - 7;
        assert_eq!(last(1, 7 + HOUR - 1), 0);
        assert_eq!(last(1, 7 + HOUR), HOUR);
        assert_eq!(last(6, 7 + 40 * HOUR), 36 * HOUR);
        // The clock is behind the creation.
        assert_eq!(last(6, 0), 0);
    }

    #[test]
    fn the_newest_complete_one_stays_whatever_its_age() {
        let made = |hours: i64, is_complete| (Timestamp(hours * HOUR), is_complete, hours);
        let all = [
            made(9, false),
            made(8, true),
            made(7, false),
            made(6, true),
            made(1, true),
        ];
        let surplus =
            |keep, days, now: i64| surplus(&request(1, keep, days), all, Timestamp(now * HOUR));
        assert_eq!(surplus(2, None, 10), [1, 7]);
        assert_eq!(surplus(9, Some(1), 25), [1, 7]);
        assert_eq!(surplus(9, Some(1), 99), [6, 1, 7]);
        assert_eq!(surplus(0, None, 10), [6, 1, 7]);
    }
}

//! The clock of plans: it takes the snapshots that are due by Wharf's own clock. The rows have the due times, so
//! that one that is late is taken once, also after a start of Wharf.

use crate::App;
use crate::snapshots::{PlanRow, SNAPSHOT_PLANS, retire, snapshots_of};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;
use wharf_db::{Changes, Read as _, Rows as _, View};
use wharf_domain::error::Error;
use wharf_domain::event::EventKind;
use wharf_domain::ids::{InstanceId, NodeId};
use wharf_domain::instance::{Instance, Intent, Progress};
use wharf_domain::kept::KeptStatus;
use wharf_domain::snapshot::Snapshot;
use wharf_domain::state::InstanceState;
use wharf_domain::time::Timestamp;

/// How often it looks for due plans.
const TICK: Duration = Duration::from_secs(5);
const HOUR: Duration = Duration::from_hours(1);

/// Takes the snapshots of plans.
pub struct Planner {
    app: Arc<App>,
    /// The due times of runs that this process has tried. One that is late was not.
    tried: BTreeMap<InstanceId, Timestamp>,
}

impl Planner {
    pub fn new(app: Arc<App>) -> Self {
        Self {
            app,
            tried: BTreeMap::new(),
        }
    }

    /// Runs until it is dropped.
    pub async fn run(mut self) {
        loop {
            if let Err(error) = self.look().await {
                tracing::error!(error = %error.chain(), "cannot carry out the plans of snapshots");
            }
            sleep(TICK).await;
        }
    }

    async fn look(&mut self) -> Result<(), Error> {
        let now = self.app.clock.now();
        let due: Vec<_> = self.app.db.read(|rows| {
            // A damaged row does not keep the others.
            let plans = rows.under(&SNAPSHOT_PLANS, &())?.filter_map(Result::ok);
            let due = plans.filter(|(_, plan)| is_due(plan, now));
            Ok(due.map(|(id, plan)| (id, plan.next)).collect())
        })?;
        self.tried
            .retain(|id, _| due.iter().any(|(other, _)| other == id));
        for (id, next) in due {
            let is_late = self.tried.insert(id, next) != Some(next);
            match self.carry_out(id).await {
                Ok(Some(node)) => self.app.nodes.work_on_snapshots(&node),
                Ok(None) => {}
                // It is due until the service can write.
                Err(error @ (Error::Internal(_) | Error::Overloaded | Error::DiskFull)) => {
                    tracing::warn!(instance = %id, error = %error.chain(), "cannot take the snapshot of a plan");
                }
                Err(error) => {
                    let (why, passes) = (words(&error), passes(&error));
                    self.refused(id, why, passes, is_late).await?;
                }
            }
        }
        Ok(())
    }

    /// Takes the snapshot of a due plan, unless nothing has changed since the last. Returns the node of the
    /// snapshot.
    async fn carry_out(&self, id: InstanceId) -> Result<Option<NodeId>, Error> {
        let taking = self.app.taking()?;
        let decide = move |view: &View<'_>| {
            let Some((instance, mut plan)) = due(view, id)? else {
                return Ok((None, Changes::none()));
            };
            let snapshots = snapshots_of(view.rows, id)?;
            let retired = retire(view, &plan, &snapshots, None)?;
            let newest = snapshots
                .iter()
                .filter(|row| is_live(row))
                .max_by_key(|row| row.seq);
            let newest = newest.map(Snapshot::status);
            let is_idle = instance.intent == Intent::Stop && instance.progress == Progress::Settled;
            let idle = is_idle.then_some(instance.generation);
            let is_unchanged = idle.is_some() && idle == plan.idle;
            plan.next = latest(&plan, view.now).plus(every(&plan));
            (plan.idle, plan.refused) = (idle, None);
            let put = move |changes: Changes| changes.rewrite(&SNAPSHOT_PLANS, id, plan.clone());
            if instance.state() == InstanceState::Error
                || (is_unchanged && newest == Some(KeptStatus::Ready))
            {
                return Ok((None, put(retired)));
            }
            if newest == Some(KeptStatus::Creating) {
                return Err(INCOMPLETE);
            }
            let (snapshot, taken) = taking.take(view, &instance, None, Some(view.now))?;
            Ok((Some(snapshot.node), put(retired.with(taken))))
        };
        self.app.db.write(decide).await
    }

    /// Notes that the plan takes no snapshot now. The run stays due until the next one is. Its owner is told once: at
    /// the end of that time, unless the run was late, or at once of a refusal that does not pass by itself.
    async fn refused(
        &self,
        id: InstanceId,
        why: String,
        passes: bool,
        is_late: bool,
    ) -> Result<(), Error> {
        let decide = move |view: &View<'_>| {
            let Some((instance, mut plan)) = due(view, id)? else {
                return Ok(((), Changes::none()));
            };
            let last = latest(&plan, view.now).max(plan.next);
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
            let mut changes = retire(view, &plan, &snapshots_of(view.rows, id)?, None)?;
            if tells {
                let what = EventKind::PlanFailed(why.clone());
                changes = changes.with(Changes::none().record(instance, view.now, what));
            }
            plan.refused = (!passes).then_some(view.now);
            plan.next = last;
            Ok(((), changes.rewrite(&SNAPSHOT_PLANS, id, plan)))
        };
        self.app.db.write_essential(decide).await
    }
}

/// The refusal while the node has not taken the snapshot before.
const INCOMPLETE: Error = Error::NotApplicable("the snapshot before it is not complete yet");

/// Whether a refusal passes by itself.
fn passes(error: &Error) -> bool {
    matches!(
        error,
        Error::State { .. } | Error::NotApplicable(_) | Error::NodeUnreachable(_)
    )
}

/// Whether a plan has a run to try. After a refusal that does not pass by itself, there is a try in an hour.
fn is_due(plan: &PlanRow, now: Timestamp) -> bool {
    plan.next <= now && plan.refused.is_none_or(|at| at.plus(HOUR) <= now)
}

/// An instance with its plan, if that is due.
fn due(view: &View<'_>, id: InstanceId) -> Result<Option<(Instance, PlanRow)>, Error> {
    let plan = view.rows.get(&SNAPSHOT_PLANS, id)?;
    let instance = view.rows.instance(id)?;
    let instance = instance.filter(|instance| instance.intent != Intent::Delete);
    Ok(instance.zip(plan.filter(|plan| is_due(plan, view.now))))
}

fn every(plan: &PlanRow) -> Duration {
    HOUR * plan.request.every_h.max(1)
}

/// The last due time up to the present one. Those before it are not made up for.
fn latest(plan: &PlanRow, now: Timestamp) -> Timestamp {
    let every = every(plan);
    let passed = u128::from(now.millis_since(plan.from)) / every.as_millis();
    plan.from
        .plus(every * u32::try_from(passed).unwrap_or(u32::MAX))
}

/// Whether a plan took the snapshot, and it is not deleted.
fn is_live(snapshot: &Snapshot) -> bool {
    snapshot.of.planned.is_some() && !snapshot.deleted
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
    use super::latest;
    use crate::snapshots::PlanRow;
    use wharf_domain::snapshot::PlanRequest;
    use wharf_domain::time::Timestamp;

    #[test]
    fn due_times_count_from_the_creation_of_the_plan() {
        const HOUR: i64 = 3_600_000;
        let plan = |every_h| PlanRow {
            request: PlanRequest {
                every_h,
                keep: 1,
                keep_days: None,
            },
            created_at: Timestamp(0),
            from: Timestamp(7),
            next: Timestamp(7),
            idle: None,
            refused: None,
        };
        let last = |every_h, now: i64| latest(&plan(every_h), Timestamp(now)).0 - 7;
        assert_eq!(last(1, 7 + HOUR - 1), 0);
        assert_eq!(last(1, 7 + HOUR), HOUR);
        assert_eq!(last(6, 7 + 40 * HOUR), 36 * HOUR);
        // The clock is behind the creation.
        assert_eq!(last(6, 0), 0);
    }
}

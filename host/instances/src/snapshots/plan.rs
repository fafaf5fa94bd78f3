//! `snapshot-plan/`: the times at which Wharf takes snapshots of an instance.

use super::rows::{PlanRow, SNAPSHOT_PLANS};
use crate::App;
use crate::find::{Selector, find};
use std::time::Duration;
use wharf_db::{Changes, Rows as _};
use wharf_domain::error::Error;
use wharf_domain::event::EventKind;
use wharf_domain::snapshot::PlanRequest;
use wharf_domain::time::Timestamp;
use wharf_ground::caller::Caller;

const HOUR: Duration = Duration::from_secs(3600);

/// The answer where the instance has no plan.
const MISSING: Error = Error::Missing("Snapshot plan");

/// A plan as its owner sees it, with times of the system's clock.
#[derive(Debug, Clone)]
pub struct PlanView {
    pub request: PlanRequest,
    pub created_at: Timestamp,
    pub next_at: Timestamp,
}

impl App {
    fn plan_view(&self, plan: PlanRow) -> PlanView {
        let times = self.clock.times();
        let left = plan.next.0.saturating_sub(times.now.0).max(0);
        PlanView {
            request: plan.request,
            created_at: plan.created_at,
            next_at: Timestamp(times.system.0.saturating_add(left)),
        }
    }

    /// Returns the plan of an instance.
    pub fn snapshot_plan(&self, caller: &Caller, selector: &Selector) -> Result<PlanView, Error> {
        let plan = self.db.read(|rows| {
            let instance = find(rows, caller.user, selector)?;
            rows.get(&SNAPSHOT_PLANS, instance.id)
        })?;
        Ok(self.plan_view(plan.ok_or(MISSING)?))
    }

    /// Sets the plan of an instance. The one that it has stays as it is, with its times.
    pub async fn plan_snapshots(
        &self,
        caller: &Caller,
        selector: &Selector,
        request: PlanRequest,
    ) -> Result<PlanView, Error> {
        let (owner, selector, taking) = (caller.user, selector.clone(), self.taking()?);
        let decided = self.change(caller, "instance.plan-snapshots", move |view| {
            let instance = find(view.rows, owner, &selector)?;
            let present = view.rows.get(&SNAPSHOT_PLANS, instance.id)?;
            if let Some(plan) = present.filter(|plan| plan.request == request) {
                return Ok((plan, Changes::none()));
            }
            taking.check(view, &instance)?;
            let plan = PlanRow {
                request,
                created_at: view.system,
                from: view.now,
                next: view.now.plus(HOUR * request.every_h),
                idle: None,
                refused: None,
            };
            let changes = Changes::none()
                .put(&SNAPSHOT_PLANS, instance.id, plan.clone())
                .record(instance, view.now, EventKind::PlanSet(request));
            Ok((plan, changes))
        });
        Ok(self.plan_view(decided.await?))
    }

    /// Ends the plan of an instance. Its snapshots stay.
    pub async fn end_snapshot_plan(
        &self,
        caller: &Caller,
        selector: &Selector,
    ) -> Result<(), Error> {
        let (owner, selector) = (caller.user, selector.clone());
        let decided = self.change_essential(caller, "instance.end-snapshot-plan", move |view| {
            let instance = find(view.rows, owner, &selector)?;
            if view.rows.get(&SNAPSHOT_PLANS, instance.id)?.is_none() {
                return Err(MISSING);
            }
            let changes = Changes::none().remove(&SNAPSHOT_PLANS, instance.id).record(
                instance,
                view.now,
                EventKind::PlanRemoved,
            );
            Ok(((), changes))
        });
        decided.await
    }
}

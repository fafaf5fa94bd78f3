//! `snapshot-plan/`: the plans by which Wharf takes snapshots of instances.

use super::retire::retire;
use super::rows::{SNAPSHOT_PLANS, snapshots_of};
use super::take::Taking;
use crate::App;
use crate::find::Selector;
use crate::plans::{PlanKind, PlanRow, PlanView};
use std::sync::Arc;
use wharf_db::{Changes, Table, View};
use wharf_domain::error::Error;
use wharf_domain::event::EventKind;
use wharf_domain::ids::{InstanceId, NodeId};
use wharf_domain::instance::Instance;
use wharf_domain::kept::KeptStatus;
use wharf_domain::snapshot::{PlanRequest, Snapshot};
use wharf_ground::caller::Caller;

/// The plans of snapshots.
#[derive(Clone)]
pub struct SnapshotPlans(pub Arc<App>);

impl PlanKind for SnapshotPlans {
    type Of = Instance;
    type Request = PlanRequest;
    type Making = Taking;
    const CLOCK: &'static str = "the clock of plans of snapshots";
    const SET: &'static str = "instance.plan-snapshots";
    const END: &'static str = "instance.end-snapshot-plan";
    const MISSING: Error = Error::Missing("Snapshot plan");
    const INCOMPLETE: Error = Error::NotApplicable("the snapshot before it is not complete yet");

    fn ended() -> EventKind {
        EventKind::PlanRemoved
    }

    fn failed(why: String) -> EventKind {
        EventKind::PlanFailed(why)
    }

    fn table() -> &'static Table<(), InstanceId, PlanRow<PlanRequest>> {
        &SNAPSHOT_PLANS
    }

    fn app(&self) -> &App {
        &self.0
    }

    fn making(&self) -> Result<Taking, Error> {
        self.0.taking()
    }

    fn check(taking: &Taking, view: &View<'_>, of: &Instance) -> Result<(), Error> {
        taking.check(view, of).map(|_| ())
    }

    fn make(
        taking: &Taking,
        view: &View<'_>,
        of: &Instance,
        _: &PlanRequest,
    ) -> Result<(NodeId, Changes), Error> {
        let (snapshot, taken) = taking.take(view, of, None, Some(view.now))?;
        Ok((snapshot.node, taken))
    }

    fn newest(view: &View<'_>, of: &Instance) -> Result<Option<KeptStatus>, Error> {
        let mut planned = snapshots_of(view.rows, of.id)?;
        planned.retain(|row| row.of.planned.is_some() && !row.deleted);
        let newest = planned.iter().max_by_key(|row| row.seq);
        Ok(newest.map(Snapshot::status))
    }

    fn retire(view: &View<'_>, of: &Instance, plan: &PlanRequest) -> Result<Changes, Error> {
        retire(view, of.id, plan, None)
    }

    fn has_run(&self, node: Option<NodeId>) {
        if let Some(node) = node {
            self.0.nodes.work_on_snapshots(&node);
        }
    }
}

impl App {
    /// Sets the plan of an instance.
    pub async fn plan_snapshots(
        &self,
        caller: &Caller,
        selector: &Selector,
        request: PlanRequest,
    ) -> Result<PlanView<PlanRequest>, Error> {
        let set = move |_: &View<'_>| Ok((request, EventKind::PlanSet(request)));
        let taking = self.taking()?;
        self.set_plan::<SnapshotPlans>(caller, selector, taking, set)
            .await
    }
}

//! `backup-plan/`: the plans by which Wharf makes backups of instances.

use crate::Backups;
use crate::create::Making;
use crate::rows::{BACKUP_PLANS, BACKUPS, backups_of, bucket};
use std::cmp::Reverse;
use std::sync::Arc;
use wharf_db::{Changes, Rows, Table, View};
use wharf_domain::backup::{
    Backup, BackupEvent, BackupPlan, BackupState, BackupTask, BackupWork, Bucket,
};
use wharf_domain::error::Error;
use wharf_domain::event::{EventKind, Initiator};
use wharf_domain::ids::{BackupId, InstanceId, NodeId, UserId};
use wharf_domain::instance::Instance;
use wharf_domain::kept::KeptStatus;
use wharf_domain::snapshot::PlanRequest;
use wharf_domain::time::Timestamp;
use wharf_ground::caller::Caller;
use wharf_instances::content::is_awaited;
use wharf_instances::plans::{PlanKind, PlanRow, PlanView, surplus};
use wharf_instances::{App, Selector};

/// The plans of backups.
#[derive(Clone)]
pub struct BackupPlans(pub(crate) Arc<Backups>);

/// A plan as its owner sees it.
#[derive(Debug, Clone)]
pub struct BackupPlanView {
    pub plan: PlanView<BackupPlan>,
    pub bucket_name: String,
}

impl PlanKind for BackupPlans {
    type Request = BackupPlan;
    type Making = Making;
    const CLOCK: &'static str = "the clock of plans of backups";
    const SET: &'static str = "instance.plan-backups";
    const END: &'static str = "instance.end-backup-plan";
    const MISSING: Error = Error::Missing("Backup plan");
    const INCOMPLETE: Error = Error::NotApplicable("the backup before it is not complete yet");

    fn ended() -> EventKind {
        EventKind::Backup(BackupEvent::PlanRemoved)
    }

    fn failed(why: String) -> EventKind {
        EventKind::Backup(BackupEvent::PlanFailed(why))
    }

    fn table() -> &'static Table<(), InstanceId, PlanRow<BackupPlan>> {
        &BACKUP_PLANS
    }

    fn app(&self) -> &App {
        &self.0.app
    }

    fn making(&self) -> Result<Making, Error> {
        self.0.making()
    }

    fn check(making: &Making, view: &View<'_>, of: &Instance) -> Result<(), Error> {
        making.check(view, of)
    }

    fn make(
        making: &Making,
        view: &View<'_>,
        of: &Instance,
        request: &BackupPlan,
    ) -> Result<(NodeId, Changes), Error> {
        let (_, node, changes) = making.make(view, of.clone(), request.bucket, true)?;
        Ok((node, changes.initiated(&Initiator::System)))
    }

    fn newest(view: &View<'_>, of: &Instance) -> Result<Option<KeptStatus>, Error> {
        let newest = planned(view.rows, of.owner, of.id)?.into_iter().next();
        Ok(newest.map(|(_, backup)| match backup.state {
            BackupState::Running(_) => KeptStatus::Creating,
            BackupState::Done(_) => KeptStatus::Ready,
            BackupState::Failed => KeptStatus::Error,
        }))
    }

    fn retire(view: &View<'_>, of: &Instance, plan: &PlanRequest) -> Result<Changes, Error> {
        retire(view, of.owner, of.id, plan, None)
    }

    fn has_run(&self, node: Option<NodeId>) {
        match node {
            Some(node) => self.0.begin(&node),
            None => self.0.work.notify_one(),
        }
    }
}

impl Backups {
    /// The plan of one of the caller's instances.
    pub fn plan(&self, caller: &Caller, selector: &Selector) -> Result<BackupPlanView, Error> {
        let plan = self.app.plan::<BackupPlans>(caller, selector)?;
        self.plan_view(caller, plan)
    }

    /// Sets the plan of one of the caller's instances, into the bucket with this id or name.
    pub async fn set_plan(
        &self,
        caller: &Caller,
        selector: &Selector,
        into: &str,
        times: PlanRequest,
    ) -> Result<BackupPlanView, Error> {
        let (owner, into) = (caller.user, into.to_owned());
        let set = move |view: &View<'_>| {
            let Bucket { id, name, .. } = bucket(view.rows, owner, &into)?;
            let words = BackupEvent::PlanSet(format!("to {name} {times}"));
            Ok((BackupPlan { bucket: id, times }, EventKind::Backup(words)))
        };
        let making = self.making()?;
        let set = self
            .app
            .set_plan::<BackupPlans>(caller, selector, making, set);
        self.plan_view(caller, set.await?)
    }

    /// Ends the plan of one of the caller's instances. Its backups stay.
    pub async fn end_plan(&self, caller: &Caller, selector: &Selector) -> Result<(), Error> {
        self.app.end_plan::<BackupPlans>(caller, selector).await
    }

    fn plan_view(
        &self,
        caller: &Caller,
        plan: PlanView<BackupPlan>,
    ) -> Result<BackupPlanView, Error> {
        let bucket = self.bucket(caller, &plan.request.bucket.to_string())?;
        Ok(BackupPlanView {
            plan,
            bucket_name: bucket.bucket.name.to_string(),
        })
    }
}

/// The backups of an instance that plans have made, the newest first, with the times of their runs.
fn planned(
    rows: &impl Rows,
    owner: UserId,
    of: InstanceId,
) -> Result<Vec<(Timestamp, Backup)>, Error> {
    let own = backups_of(rows, owner)?.into_iter();
    let own = own.filter(|backup| backup.of.instance() == Some(of) && !backup.is_deleted());
    let mut planned: Vec<_> = own
        .filter_map(|backup| Some((backup.planned?, backup)))
        .collect();
    planned.sort_by_key(|(at, _)| Reverse(*at));
    Ok(planned)
}

/// Deletes the backups that a plan does not keep, unless an instance waits for their content. `done` is complete with
/// this write.
fn retire(
    view: &View<'_>,
    owner: UserId,
    of: InstanceId,
    plan: &PlanRequest,
    done: Option<BackupId>,
) -> Result<Changes, Error> {
    let ended = planned(view.rows, owner, of)?.into_iter();
    let ended = ended.filter_map(|(at, backup)| {
        let is_done = backup.stored().is_some() || done == Some(backup.id);
        let has_ended = is_done || backup.state == BackupState::Failed;
        has_ended.then_some((at, is_done, backup))
    });
    let mut changes = Changes::none();
    for mut backup in surplus(plan, ended, view.now) {
        if !is_awaited(view.rows, backup.id)? {
            backup.work = Some(BackupWork::new(BackupTask::Remove, view.now));
            changes = changes.put(&BACKUPS, (owner, backup.id), backup);
        }
    }
    Ok(changes)
}

/// The changes that come with a complete backup: its plan keeps fewer older ones.
pub(crate) fn retire_for(view: &View<'_>, done: &Backup) -> Result<Changes, Error> {
    let Some(of) = done.of.instance().filter(|_| done.planned.is_some()) else {
        return Ok(Changes::none());
    };
    match view.rows.get(&BACKUP_PLANS, of)? {
        Some(plan) => retire(view, done.owner, of, plan.request.as_ref(), Some(done.id)),
        None => Ok(Changes::none()),
    }
}

//! `backup-plan/`: the plans by which Wharf makes backups of instances and volumes.

use crate::rows::{BACKUP_PLANS, BACKUPS, BUCKETS, VOLUME_BACKUP_PLANS, backups_of, bucket};
use crate::{Backups, create, volumes};
use std::cmp::Reverse;
use std::marker::PhantomData;
use std::sync::Arc;
use wharf_db::{Changes, Findings, Read, ReadRows, Rows, Table, View};
use wharf_domain::backup::{
    Backup, BackupEvent, BackupOf, BackupPlan, BackupState, BackupTask, BackupWork, Bucket,
};
use wharf_domain::error::Error;
use wharf_domain::event::{EventKind, Initiator};
use wharf_domain::ids::{BackupId, BucketId, InstanceId, NodeId, UserId, VolumeId};
use wharf_domain::instance::Instance;
use wharf_domain::kept::{KeptEvent, KeptStatus};
use wharf_domain::name::Name;
use wharf_domain::snapshot::PlanRequest;
use wharf_domain::time::Timestamp;
use wharf_domain::volume::Volume;
use wharf_ground::caller::Caller;
use wharf_instances::App;
use wharf_instances::content::is_awaited;
use wharf_instances::plans::{PlanKind, PlanRow, PlanView, Planned, surplus};

/// The plans of backups of instances, or of those of volumes.
pub struct BackupPlans<O> {
    backups: Arc<Backups>,
    of: PhantomData<fn() -> O>,
}

impl<O> BackupPlans<O> {
    pub(crate) fn new(backups: Arc<Backups>) -> Self {
        let of = PhantomData;
        Self { backups, of }
    }
}

impl<O> Clone for BackupPlans<O> {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.backups))
    }
}

/// A plan as its owner sees it.
#[derive(Debug, Clone)]
pub struct BackupPlanView {
    pub plan: PlanView<BackupPlan>,
    pub bucket_name: String,
}

/// A thing that plans make backups of.
pub trait BackedUpByPlan: Planned<Id: Into<InstanceId>> {
    type Making: Send + 'static;
    const CLOCK: &'static str;
    const SET: &'static str;
    const END: &'static str;

    fn table() -> &'static Table<(), Self::Id, PlanRow<BackupPlan>>;
    fn owner(&self) -> UserId;
    fn name(&self) -> &Name;
    fn event(what: BackupEvent) -> Self::Event;
    fn making(backups: &Backups) -> Result<Self::Making, Error>;
    fn check(&self, making: &Self::Making, view: &View<'_>) -> Result<(), Error>;
    fn make(
        &self,
        making: &Self::Making,
        view: &View<'_>,
        into: BucketId,
    ) -> Result<(NodeId, Changes), Error>;
}

impl BackedUpByPlan for Instance {
    type Making = create::Making;
    const CLOCK: &'static str = "the clock of plans of backups";
    const SET: &'static str = "instance.plan-backups";
    const END: &'static str = "instance.end-backup-plan";

    fn table() -> &'static Table<(), InstanceId, PlanRow<BackupPlan>> {
        &BACKUP_PLANS
    }

    fn owner(&self) -> UserId {
        self.owner
    }

    fn name(&self) -> &Name {
        &self.name
    }

    fn event(what: BackupEvent) -> EventKind {
        EventKind::Backup(what)
    }

    fn making(backups: &Backups) -> Result<create::Making, Error> {
        backups.making()
    }

    fn check(&self, making: &create::Making, view: &View<'_>) -> Result<(), Error> {
        making.check(view, self)
    }

    fn make(
        &self,
        making: &create::Making,
        view: &View<'_>,
        into: BucketId,
    ) -> Result<(NodeId, Changes), Error> {
        let (_, node, changes) = making.make(view, self.clone(), into, true)?;
        Ok((node, changes))
    }
}

impl BackedUpByPlan for Volume {
    type Making = volumes::Making;
    const CLOCK: &'static str = "the clock of plans of backups of volumes";
    const SET: &'static str = "volume.plan-backups";
    const END: &'static str = "volume.end-backup-plan";

    fn table() -> &'static Table<(), VolumeId, PlanRow<BackupPlan>> {
        &VOLUME_BACKUP_PLANS
    }

    fn owner(&self) -> UserId {
        self.owner
    }

    fn name(&self) -> &Name {
        &self.name
    }

    fn event(what: BackupEvent) -> KeptEvent {
        KeptEvent::Backup(what)
    }

    fn making(backups: &Backups) -> Result<volumes::Making, Error> {
        backups.making_of_volumes()
    }

    fn check(&self, making: &volumes::Making, _: &View<'_>) -> Result<(), Error> {
        making.check(self)
    }

    fn make(
        &self,
        making: &volumes::Making,
        view: &View<'_>,
        into: BucketId,
    ) -> Result<(NodeId, Changes), Error> {
        let (_, changes) = making.make(view, self.clone(), into, true)?;
        Ok((self.node.clone(), changes))
    }
}

impl<O: BackedUpByPlan> PlanKind for BackupPlans<O> {
    type Of = O;
    type Request = BackupPlan;
    type Making = O::Making;
    const CLOCK: &'static str = O::CLOCK;
    const SET: &'static str = O::SET;
    const END: &'static str = O::END;
    const MISSING: Error = Error::Missing("Backup plan");
    const INCOMPLETE: Error = Error::NotApplicable("the backup before it is not complete yet");

    fn ended() -> O::Event {
        O::event(BackupEvent::PlanRemoved)
    }

    fn failed(why: String) -> O::Event {
        O::event(BackupEvent::PlanFailed(why))
    }

    fn table() -> &'static Table<(), O::Id, PlanRow<BackupPlan>> {
        O::table()
    }

    fn app(&self) -> &App {
        &self.backups.app
    }

    fn making(&self) -> Result<O::Making, Error> {
        O::making(&self.backups)
    }

    fn check(making: &O::Making, view: &View<'_>, of: &O) -> Result<(), Error> {
        of.check(making, view)
    }

    fn make(
        making: &O::Making,
        view: &View<'_>,
        of: &O,
        request: &BackupPlan,
    ) -> Result<(NodeId, Changes), Error> {
        let (node, changes) = of.make(making, view, request.bucket)?;
        Ok((node, changes.initiated(&Initiator::System)))
    }

    fn newest(view: &View<'_>, of: &O) -> Result<Option<KeptStatus>, Error> {
        let newest = planned(view.rows, of.owner(), of.id().into())?;
        let newest = newest.into_iter().next();
        Ok(newest.map(|(_, backup)| match backup.state {
            BackupState::Running(_) => KeptStatus::Creating,
            BackupState::Done(_) => KeptStatus::Ready,
            BackupState::Failed => KeptStatus::Error,
        }))
    }

    fn retire(view: &View<'_>, of: &O, plan: &PlanRequest) -> Result<Changes, Error> {
        retire(view, of.owner(), of.id().into(), plan, None)
    }

    fn has_run(&self, node: Option<NodeId>) {
        match node {
            Some(node) => self.backups.begin(&node),
            None => self.backups.work.notify_one(),
        }
    }
}

impl Backups {
    /// The plan of one of the caller's instances or volumes.
    pub fn plan<O: BackedUpByPlan>(
        &self,
        caller: &Caller,
        named: &O::Named,
    ) -> Result<BackupPlanView, Error> {
        let plan = self.app.plan::<BackupPlans<O>>(caller, named)?;
        self.plan_view(caller, plan)
    }

    /// Sets the plan of one of the caller's instances or volumes, into the bucket with this id or name.
    pub async fn set_plan<O: BackedUpByPlan>(
        &self,
        caller: &Caller,
        named: &O::Named,
        into: &str,
        times: PlanRequest,
    ) -> Result<BackupPlanView, Error> {
        let (owner, into) = (caller.user, into.to_owned());
        let set = move |view: &View<'_>| {
            let Bucket { id, name, .. } = bucket(view.rows, owner, &into)?;
            let words = BackupEvent::PlanSet(format!("to {name} {times}"));
            Ok((BackupPlan { bucket: id, times }, O::event(words)))
        };
        let making = O::making(self)?;
        let set = self
            .app
            .set_plan::<BackupPlans<O>>(caller, named, making, set);
        self.plan_view(caller, set.await?)
    }

    /// Ends the plan of one of the caller's instances or volumes. Its backups stay.
    pub async fn end_plan<O: BackedUpByPlan>(
        &self,
        caller: &Caller,
        named: &O::Named,
    ) -> Result<(), Error> {
        self.app.end_plan::<BackupPlans<O>>(caller, named).await
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

/// The time of a run of a plan: later than that of each earlier one of the instance or volume.
pub(crate) fn run_time(view: &View<'_>, others: &[Backup], of: InstanceId) -> Timestamp {
    let own = others.iter().filter(|other| other.of.subject() == of);
    let last = own.filter_map(|other| other.planned).max();
    last.map_or(view.now, |last| view.now.max(Timestamp(last.0 + 1)))
}

/// The end of plans that use a bucket. Fails unless those of their kind are being deleted.
pub(crate) fn end_plans<O: BackedUpByPlan>(
    rows: &impl Read,
    bucket: BucketId,
) -> Result<Changes, Error> {
    let mut changes = Changes::none();
    for row in rows.under(O::table(), &())? {
        let (id, plan) = row?;
        if plan.request.bucket != bucket {
            continue;
        }
        if let Some(of) = O::present(rows, id)? {
            return Err(Error::Refused(format!(
                "the plan of {} makes backups in this bucket; end that plan first",
                of.name()
            )));
        }
        changes = changes.remove(O::table(), ((), id));
    }
    Ok(changes)
}

/// Each plan has its bucket.
pub(crate) fn check_plans<O: BackedUpByPlan>(
    rows: &ReadRows,
    wrong: &mut Findings,
) -> Result<(), Error> {
    for row in rows.under(O::table(), &())? {
        // A damaged row does not keep the others from their check.
        let Ok((id, plan)) = row else {
            continue;
        };
        let Ok(Some(of)) = O::present(rows, id) else {
            continue;
        };
        let bucket = (of.owner(), plan.request.bucket);
        if rows.get(&BUCKETS, bucket)?.is_none() {
            wrong.push(format!("{id}: the bucket of its plan does not exist"));
        }
    }
    Ok(())
}

/// The backups of an instance or a volume that plans have made, the newest first, with the times of their runs.
fn planned(
    rows: &impl Rows,
    owner: UserId,
    of: InstanceId,
) -> Result<Vec<(Timestamp, Backup)>, Error> {
    let own = backups_of(rows, owner)?.into_iter();
    let own = own.filter(|backup| backup.of.subject() == of && !backup.is_deleted());
    let mut planned: Vec<_> = own
        .filter_map(|backup| Some((backup.planned?, backup)))
        .collect();
    planned.sort_by_key(|(at, _)| Reverse(*at));
    Ok(planned)
}

/// Deletes the backups that a plan does not keep, unless an instance or a volume waits for their content. `done` is complete with
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
    if done.planned.is_none() {
        return Ok(Changes::none());
    }
    let plan = match done.of.what {
        BackupOf::Instance { id, .. } => view.rows.get(&BACKUP_PLANS, id)?,
        BackupOf::Volume { id, .. } => view.rows.get(&VOLUME_BACKUP_PLANS, id)?,
    };
    let (owner, of) = (done.owner, done.of.subject());
    match plan {
        Some(plan) => retire(view, owner, of, plan.request.as_ref(), Some(done.id)),
        None => Ok(Changes::none()),
    }
}

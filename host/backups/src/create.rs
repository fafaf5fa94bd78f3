//! `POST`, `verify/` and `DELETE` of backups. The worker does the rest after the answer.

use crate::plan::run_time;
use crate::rows::{BACKUPS, MAX_BACKUPS, backup, backups_of, bucket};
use crate::{BackupView, Backups, volumes};
use std::collections::BTreeMap;
use wharf_accounts::recent_sign_in::require_access;
use wharf_db::{Changes, Read as _, View};
use wharf_domain::backup::{
    BackedUp, Backup, BackupEvent, BackupOf, BackupState, BackupTask, BackupWork,
};
use wharf_domain::error::Error;
use wharf_domain::event::EventKind;
use wharf_domain::ids::{BackupId, BucketId, NodeId};
use wharf_domain::instance::{Instance, Intent};
use wharf_domain::name::Name;
use wharf_ground::audit::record;
use wharf_ground::caller::Caller;
use wharf_instances::snapshots::{self, Taking};
use wharf_instances::{Selector, find};

/// The new work on a backup, and the changes with it.
type Decided = Result<(BackupWork, Changes), Error>;

/// The inputs of a decision about a new backup, beside the rows.
pub struct Making {
    id: BackupId,
    taking: Taking,
    /// The kinds of engines of the nodes that give content.
    engines: BTreeMap<NodeId, String>,
}

impl Making {
    /// Fails unless a backup of the instance can be made now, whatever the number of others.
    pub(crate) fn check(&self, view: &View<'_>, of: &Instance) -> Result<(), Error> {
        self.taking.check(view, of)?;
        self.engine(of).map(|_| ())
    }

    fn engine(&self, of: &Instance) -> Result<String, Error> {
        self.engines.get(&of.node).cloned().ok_or_else(|| {
            Error::Refused("the engine of this instance makes no backups".to_owned())
        })
    }

    /// Decides about a backup, by hand or by a plan: a row, an event, and a snapshot, which is deleted once the backup
    /// has ended.
    pub(crate) fn make(
        &self,
        view: &View<'_>,
        of: Instance,
        bucket: BucketId,
        is_planned: bool,
    ) -> Result<(Backup, NodeId, Changes), Error> {
        let (id, owner) = (self.id, of.owner);
        let others = backups_of(view.rows, owner)?;
        refuse_more(&others)?;
        let hex = id.0.simple().to_string();
        let name = hex.get(hex.len() - 8..).unwrap_or(&hex);
        let name = Name::parse(&format!("backup-{name}")).map_err(Error::internal)?;
        let (snapshot, changes) = self.taking.take(view, &of, Some(name), None)?;
        let engine_kind = self.engine(&of)?;
        let planned = run_time(view, &others, of.id);
        let backup = Backup {
            id,
            owner,
            bucket,
            of: BackedUp {
                what: BackupOf::Instance {
                    id: of.id,
                    flavor: of.flavor.clone(),
                    size: of.size,
                },
                name: of.name.clone(),
                cpu_tier: of.cpu_tier,
                engine_kind,
            },
            created_at: view.system,
            state: BackupState::Running(Some(snapshot.id)),
            work: Some(BackupWork::new(BackupTask::Send, view.now)),
            reason: None,
            verified_at: None,
            planned: is_planned.then_some(planned),
        };
        let what = if is_planned {
            BackupEvent::Planned
        } else {
            BackupEvent::Created
        };
        let changes = changes.put(&BACKUPS, (owner, id), backup.clone()).record(
            of,
            view.now,
            EventKind::Backup(what),
        );
        Ok((backup, snapshot.node, changes))
    }
}

/// Fails if a user cannot have another backup.
pub(crate) fn refuse_more(present: &[Backup]) -> Result<(), Error> {
    if present.len() < MAX_BACKUPS {
        return Ok(());
    }
    Err(Error::Refused(format!(
        "a user has at most {MAX_BACKUPS} backups; delete one first"
    )))
}

impl Backups {
    pub(crate) fn making(&self) -> Result<Making, Error> {
        Ok(Making {
            id: BackupId(self.random.id(self.clock.system())?),
            taking: self.app.taking()?,
            engines: self.app.content_nodes(),
        })
    }

    /// Accepts a backup of one of the caller's instances.
    pub async fn create(
        &self,
        caller: &Caller,
        instance: &Selector,
        into: &str,
    ) -> Result<BackupView, Error> {
        // Right after a start, the features of the nodes are not known yet.
        self.app.content_nodes_seen().await;
        let making = self.making()?;
        let (by, selector, into) = (caller.clone(), instance.clone(), into.to_owned());
        let written = self.db.write(move |view| {
            require_access(view, &by)?;
            let bucket = bucket(view.rows, by.user, &into)?;
            let instance = find(view.rows, by.user, &selector)?;
            let (backup, node, changes) = making.make(view, instance, bucket.id, false)?;
            let audited = audited(view, &by, "backup.create", &backup, "running");
            Ok(((backup.id, node), changes.by(&by.origin()).with(audited)))
        });
        let (id, node) = written.await?;
        self.begin(&node);
        self.get(caller, id)
    }

    /// Begins the work on a new backup, whose snapshot is on this node.
    pub(crate) fn begin(&self, node: &NodeId) {
        self.app.nodes().work_on_snapshots(node);
        self.work.notify_one();
    }

    /// Has the content of a backup read back.
    pub async fn verify(&self, caller: &Caller, id: BackupId) -> Result<BackupView, Error> {
        self.change(caller, id, "backup.verify", |view, backup| {
            if !matches!(backup.state, BackupState::Done(_)) {
                let state = backup.state_word();
                return Err(Error::Refused(format!(
                    "the state of the backup is {state}"
                )));
            }
            let work = BackupWork::new(BackupTask::Verify, view.now);
            Ok((work, Changes::none()))
        })
        .await?;
        self.get(caller, id)
    }

    /// Deletes a backup, or ends one that runs. Its objects are removed after the answer.
    pub async fn delete(&self, caller: &Caller, id: BackupId) -> Result<(), Error> {
        self.change(caller, id, "backup.delete", |view, backup| {
            let changes = release(view, backup, None)?;
            Ok((BackupWork::new(BackupTask::Remove, view.now), changes))
        })
        .await
    }

    /// Gives a backup other work.
    async fn change(
        &self,
        caller: &Caller,
        id: BackupId,
        operation: &'static str,
        decide: fn(&View<'_>, &Backup) -> Decided,
    ) -> Result<(), Error> {
        let by = caller.clone();
        let written = self.db.write_essential(move |view| {
            require_access(view, &by)?;
            let mut backup = backup(view.rows, by.user, id)?;
            let (work, changes) = decide(view, &backup)?;
            backup.work = Some(work);
            let audited = audited(view, &by, operation, &backup, "accepted");
            let changes = changes.put(&BACKUPS, (by.user, id), backup).with(audited);
            Ok(((), changes))
        });
        written.await?;
        self.work.notify_one();
        Ok(())
    }
}

/// The changes with the end of a backup that runs: its snapshot goes, or its volume may be written again. With the end
/// comes an event, if the instance or the volume is there.
pub(crate) fn release(
    view: &View<'_>,
    backup: &Backup,
    what: Option<BackupEvent>,
) -> Result<Changes, Error> {
    let BackupState::Running(snapshot) = backup.state else {
        return Ok(Changes::none());
    };
    if let Some(volume) = backup.of.volume() {
        return volumes::release(view, volume, backup.id, what);
    }
    let mut changes = Changes::none();
    if let Some(snapshot) = snapshot {
        changes = snapshots::delete_one(view, snapshot)?;
    }
    let instance = match backup.of.instance() {
        Some(id) => view.rows.instance(id)?,
        None => None,
    };
    let instance = instance.filter(|instance| instance.intent != Intent::Delete);
    if let Some((instance, what)) = instance.zip(what) {
        changes = changes.record(instance, view.now, EventKind::Backup(what));
    }
    Ok(changes)
}

pub(crate) fn audited(
    view: &View<'_>,
    by: &Caller,
    operation: &str,
    backup: &Backup,
    result: &str,
) -> Changes {
    let subject = format!("{} of {}", backup.id, backup.of.name);
    let owner = Some(backup.owner);
    record(view, &by.origin(), operation, owner, &subject, result)
}

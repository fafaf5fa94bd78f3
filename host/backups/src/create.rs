//! `POST`, `verify/` and `DELETE` of backups. The worker does the rest after the answer.

use crate::rows::{BACKUPS, MAX_BACKUPS, backup, backups_of, bucket};
use crate::{BackupView, Backups};
use wharf_accounts::recent_sign_in::require_access;
use wharf_db::{Changes, View};
use wharf_domain::backup::{BackedUp, Backup, BackupState, BackupTask, BackupWork};
use wharf_domain::error::Error;
use wharf_domain::ids::BackupId;
use wharf_domain::name::Name;
use wharf_ground::audit::record;
use wharf_ground::caller::Caller;
use wharf_instances::{Selector, find, snapshots};

/// The new work on a backup, and the changes with it.
type Decided = Result<(BackupWork, Changes), Error>;

impl Backups {
    /// Accepts a backup of one of the caller's instances: one write with a snapshot of it, which is deleted once the
    /// backup has ended.
    pub async fn create(
        &self,
        caller: &Caller,
        instance: &Selector,
        into: &str,
    ) -> Result<BackupView, Error> {
        let id = BackupId(self.random.id(self.clock.system())?);
        let (taking, nodes) = (self.app.taking()?, self.app.content_nodes());
        let (by, selector, into) = (caller.clone(), instance.clone(), into.to_owned());
        let written = self.db.write(move |view| {
            require_access(view, &by)?;
            let owner = by.user;
            let bucket = bucket(view.rows, owner, &into)?;
            let instance = find(view.rows, owner, &selector)?;
            if backups_of(view.rows, owner)?.len() >= MAX_BACKUPS {
                return Err(Error::Refused(format!(
                    "a user has at most {MAX_BACKUPS} backups; delete one first"
                )));
            }
            let hex = id.0.simple().to_string();
            let name = hex.get(hex.len() - 8..).unwrap_or(&hex);
            let name = Name::parse(&format!("backup-{name}")).map_err(Error::internal)?;
            let (snapshot, changes) = taking.take(view, &instance, Some(name), None)?;
            let engine_kind = nodes.get(&instance.node).cloned().ok_or_else(|| {
                Error::Refused("the engine of this instance makes no backups".to_owned())
            })?;
            let backup = Backup {
                id,
                owner,
                bucket: bucket.id,
                of: BackedUp {
                    instance: instance.id,
                    name: instance.name,
                    flavor: instance.flavor,
                    cpu_tier: instance.cpu_tier,
                    size: instance.size,
                    engine_kind,
                },
                created_at: view.system,
                state: BackupState::Running(snapshot.id),
                work: Some(BackupWork::new(BackupTask::Send, view.now)),
                reason: None,
                verified_at: None,
            };
            let audited = audited(view, &by, "backup.create", &backup, "running");
            let changes = changes.put(&BACKUPS, (owner, id), backup).with(audited);
            Ok((snapshot.node, changes))
        });
        let node = written.await?;
        self.app.nodes().work_on_snapshots(&node);
        self.work.notify_one();
        self.get(caller, id)
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
            let changes = match backup.state {
                BackupState::Running(snapshot) => snapshots::delete_one(view, snapshot)?,
                BackupState::Done(_) | BackupState::Failed => Changes::none(),
            };
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

fn audited(
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

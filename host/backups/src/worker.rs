//! The worker: it sends, verifies and removes backups, a few at a time, and repeats what failed for a while.

use crate::Backups;
use crate::create::release;
use crate::plan::{BackupPlans, retire_for};
use crate::rows::{BACKUPS, BUCKETS, backups_of};
use crate::send::{is_settled, source_id};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::{Id, JoinSet};
use tokio::time::{Instant, sleep, timeout};
use wharf_buckets::BucketError;
use wharf_db::{Changes, Rows as _, SNAPSHOTS, View};
use wharf_domain::backup::{Backup, BackupEvent, BackupState, BackupTask, Bucket, StoredBytes};
use wharf_domain::error::Error;
use wharf_domain::event::Initiator;
use wharf_domain::ids::{BackupId, UserId};
use wharf_domain::instance::Instance;
use wharf_domain::time::Timestamp;
use wharf_domain::volume::Volume;
use wharf_instances::plans::carry_out;

/// The most backups that are worked on at once: each takes a core and a disk.
const AT_ONCE: usize = 4;
/// The pause between two looks at snapshots that are being taken.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The longest pause between two looks. The clock may step.
const LONGEST: Duration = Duration::from_secs(60);
/// The pause after the first attempt that failed; each later one is twice as long, up to an hour.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);
/// The attempts after which a backup has failed: after about eight hours.
const MAX_ATTEMPTS: u32 = 20;
/// The time for a removal, which is repeated. Its bucket cannot be forgotten before one has ended.
const REMOVED: Duration = Duration::from_secs(10);
/// The pause between two looks for uploads that an earlier process has left.
const CLEAN_EVERY: Duration = Duration::from_secs(24 * 3600);

/// The result of an attempt.
pub enum Attempted {
    Sent(StoredBytes),
    Verified(Timestamp),
    Removed,
}

/// Why an attempt failed.
pub struct Trouble {
    words: String,
    is_final: bool,
}

impl Trouble {
    /// One that a later attempt may not meet.
    pub fn now(words: impl Into<String>) -> Self {
        Self {
            words: words.into(),
            is_final: false,
        }
    }

    /// One that each later attempt would meet.
    pub fn last(words: impl Into<String>) -> Self {
        Self {
            words: words.into(),
            is_final: true,
        }
    }
}

impl From<BucketError> for Trouble {
    fn from(error: BucketError) -> Self {
        Self {
            words: error.to_string(),
            is_final: error.is_final(),
        }
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        tracing::error!(error = %error.chain(), "a backup cannot be worked on");
        Self::now("the service could not read its rows")
    }
}

/// Work that is due.
struct Due {
    backup: Backup,
    bucket: Bucket,
}

/// Runs until `stop` changes. The next start begins again what was under way.
pub async fn run(backups: Arc<Backups>, mut stop: watch::Receiver<bool>) {
    let mut tasks = JoinSet::new();
    tasks.spawn(carry_out(BackupPlans::<Instance>::new(Arc::clone(
        &backups,
    ))));
    tasks.spawn(carry_out(BackupPlans::<Volume>::new(Arc::clone(&backups))));
    let mut running: HashMap<Id, BackupId> = HashMap::new();
    let mut cleaned: Option<Instant> = None;
    loop {
        let is_running = |id: &BackupId| running.values().any(|running| running == id);
        let (due, pause) = match backups.due(is_running) {
            Ok(found) => found,
            Err(error) => {
                tracing::error!(error = %error.chain(), "cannot read the backups");
                (Vec::new(), LONGEST)
            }
        };
        for due in due.into_iter().take(AT_ONCE.saturating_sub(running.len())) {
            let (backups, id) = (Arc::clone(&backups), due.backup.id);
            let task = tasks.spawn(async move { backups.attempt(due).await });
            running.insert(task.id(), id);
        }
        if cleaned.is_none_or(|at| at.elapsed() >= CLEAN_EVERY) {
            cleaned = Some(Instant::now());
            let backups = Arc::clone(&backups);
            tasks.spawn(async move { backups.clean().await });
        }
        tokio::select! {
            biased;
            _ = stop.changed() => return,
            () = backups.work.notified() => {}
            () = sleep(pause) => {}
            Some(ended) = tasks.join_next_with_id() => {
                let task = match ended {
                    Ok((task, ())) => task,
                    Err(error) => {
                        tracing::error!(%error, "work on a backup ended unexpectedly");
                        // Its rows may make it panic each time.
                        sleep(LOOK_EVERY).await;
                        error.id()
                    }
                };
                running.remove(&task);
            }
        }
    }
}

impl Backups {
    /// The work that is due, and the pause until the next look.
    fn due(&self, is_running: impl Fn(&BackupId) -> bool) -> Result<(Vec<Due>, Duration), Error> {
        let now = self.clock.now();
        self.db.read(|rows| {
            let (mut due, mut pause) = (Vec::new(), LONGEST);
            for row in rows.all(&BACKUPS)? {
                let (owner, id, backup) = row?;
                let Some(work) = backup.work.filter(|_| !is_running(&id)) else {
                    continue;
                };
                let left = Duration::from_millis(work.due.millis_since(now));
                // No pause is longer: the clock was set back.
                let left = Some(left).filter(|left| *left <= LONGEST_PAUSE);
                let left = left.unwrap_or_default();
                if let BackupState::Running(Some(snapshot)) = backup.state
                    && work.what == BackupTask::Send
                    && !is_settled(rows.get(&SNAPSHOTS, snapshot)?.as_ref())
                {
                    pause = pause.min(LOOK_EVERY);
                } else if !left.is_zero() {
                    pause = pause.min(left);
                } else if let Some(bucket) = rows.get(&BUCKETS, (owner, backup.bucket))? {
                    due.push(Due { backup, bucket });
                }
            }
            Ok((due, pause))
        })
    }

    /// Works on a backup once, and writes the result.
    async fn attempt(&self, Due { backup, bucket }: Due) {
        let (owner, id, begun) = (backup.owner, backup.id, backup.work);
        let Some(work) = begun else {
            return;
        };
        let working = async {
            match (work.what, &backup.state) {
                (BackupTask::Send, BackupState::Running(_)) => self.send(&backup, &bucket).await,
                (BackupTask::Send, _) => Err(Trouble::last("it does not run any more")),
                (BackupTask::Verify, _) => self.read_back(&backup, &bucket).await,
                (BackupTask::Remove, _) => self.remove(&backup, &bucket).await,
            }
        };
        let result = tokio::select! {
            biased;
            result = working => Some(result),
            () = self.other_work(&backup) => None,
        };
        self.progress.lock().remove(&id);
        let Some(result) = result else {
            if let Some(source) = source_id(&backup) {
                self.app.plugins().offers().drop_object(source);
            }
            return;
        };
        if let Err(trouble) = &result {
            let (why, failed) = (&trouble.words, work.failed);
            tracing::info!(backup = %id, task = ?work.what, why, failed, "a backup met trouble");
        }
        let has_failed = work.what == BackupTask::Send
            && matches!(&result, Err(trouble) if is_last(trouble, work.failed));
        let written = self.db.write_essential(move |view| {
            // Its user may have given it other work.
            let row = view.rows.get(&BACKUPS, (owner, id))?;
            let changes = match row.filter(|row| row.work == begun) {
                Some(row) => changed(view, row, &result)?,
                None => Changes::none(),
            };
            Ok(((), changes))
        });
        if let Err(error) = written.await {
            tracing::error!(backup = %id, error = %error.chain(), "the result of work on a backup was not written");
        }
        if has_failed {
            // Objects without a manifest are no backup, and only take room.
            let _ = self.remove(&backup, &bucket).await;
        }
    }

    /// Returns once the user has given a backup other work.
    async fn other_work(&self, begun: &Backup) {
        let present = || {
            let key = (begun.owner, begun.id);
            self.db.read(|rows| rows.get(&BACKUPS, key))
        };
        // A row that cannot be read is no other work.
        while present().map_or(true, |row| row.is_some_and(|row| row.work == begun.work)) {
            sleep(LOOK_EVERY).await;
        }
    }

    async fn read_back(&self, backup: &Backup, bucket: &Bucket) -> Result<Attempted, Trouble> {
        let (client, key) = self.open(bucket)?;
        let manifest = client.manifest(&backup.id.to_string(), &key).await?;
        client.verify(&manifest, &key).await?;
        Ok(Attempted::Verified(self.clock.system()))
    }

    async fn remove(&self, backup: &Backup, bucket: &Bucket) -> Result<Attempted, Trouble> {
        let (client, _) = self.open(bucket)?;
        let id = backup.id.to_string();
        let removed = timeout(REMOVED, client.delete(&id));
        let late = |_| Trouble::now("the bucket does not answer in time");
        removed.await.map_err(late)??;
        Ok(Attempted::Removed)
    }

    /// Ends the uploads that no backup continues.
    async fn clean(&self) {
        let buckets = self.db.read(|rows| {
            let mut found = Vec::new();
            for row in rows.all(&BUCKETS)? {
                let (owner, _, bucket) = row?;
                found.push((bucket, unfinished(rows, owner)?));
            }
            Ok::<_, Error>(found)
        });
        for (bucket, keep) in buckets.unwrap_or_default() {
            let cleaned = match self.open(&bucket) {
                Ok((client, _)) => client.abort_uploads(&keep).await,
                Err(error) => Err(error),
            };
            if let Err(error) = cleaned {
                tracing::info!(bucket = %bucket.id, %error, "old uploads were not ended");
            }
        }
    }
}

/// The ids of the backups of a user that run.
fn unfinished(rows: &impl wharf_db::Rows, owner: UserId) -> Result<Vec<String>, Error> {
    let own = backups_of(rows, owner)?.into_iter();
    let own = own.filter(|backup| matches!(backup.state, BackupState::Running(_)));
    Ok(own.map(|backup| backup.id.to_string()).collect())
}

/// Whether no further attempt follows.
fn is_last(trouble: &Trouble, failed: u32) -> bool {
    trouble.is_final || failed.saturating_add(1) >= MAX_ATTEMPTS
}

/// The changes after an attempt.
fn changed(
    view: &View<'_>,
    mut row: Backup,
    result: &Result<Attempted, Trouble>,
) -> Result<Changes, Error> {
    let key = (row.owner, row.id);
    let Some(mut work) = row.work.take() else {
        return Ok(Changes::none());
    };
    let mut changes = Changes::none();
    match result {
        Ok(Attempted::Removed) => return Ok(changes.remove(&BACKUPS, key)),
        Ok(Attempted::Verified(at)) => {
            row.verified_at = Some(*at);
            row.reason = None;
        }
        Ok(Attempted::Sent(stored)) => {
            changes = ended(view, &row, BackupEvent::Done)?;
            changes = changes.with(retire_for(view, &row)?);
            row.state = BackupState::Done(*stored);
            row.reason = None;
        }
        // A bucket that is gone for good can be forgotten.
        Err(trouble) if work.what != BackupTask::Remove && is_last(trouble, work.failed) => {
            if matches!(row.state, BackupState::Running(_)) {
                changes = ended(view, &row, BackupEvent::Failed(trouble.words.clone()))?;
                row.state = BackupState::Failed;
            }
            row.reason = Some(trouble.words.clone());
        }
        Err(trouble) => {
            let pause = FIRST_PAUSE * (1 << work.failed.min(12));
            work.failed = work.failed.saturating_add(1);
            work.due = view.now.plus(pause.min(LONGEST_PAUSE));
            row.reason = Some(trouble.words.clone());
            row.work = Some(work);
        }
    }
    Ok(changes.put(&BACKUPS, key, row))
}

/// The changes with the end of a backup that the user has not ended.
fn ended(view: &View<'_>, row: &Backup, what: BackupEvent) -> Result<Changes, Error> {
    let changes = release(view, row, Some(what))?;
    Ok(changes.initiated(&Initiator::System))
}

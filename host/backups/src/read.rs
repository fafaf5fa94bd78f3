//! `GET` of backups.

use crate::rows::{backup, backups_of, bucket, buckets_of, complete, complete_of_volume};
use crate::{Backups, volumes};
use std::collections::BTreeMap;
use wharf_db::Read;
use wharf_domain::backup::{Backup, BackupState};
use wharf_domain::error::Error;
use wharf_domain::ids::{BackupId, BucketId, UserId};
use wharf_domain::time::Timestamp;
use wharf_ground::caller::Caller;
use wharf_instances::{Returning, ReturningMount, Selector, check_lost, find};

/// A backup as its owner sees it.
#[derive(Debug, Clone)]
pub struct BackupView {
    pub backup: Backup,
    pub bucket_name: String,
    /// Words about the progress while it runs.
    pub progress: Option<String>,
}

/// The backups that a list has: those of one instance, of one volume, or in one bucket.
#[derive(Debug, Clone, Default)]
pub struct BackupFilter {
    pub instance: Option<Selector>,
    /// UUID or name.
    pub volume: Option<String>,
    /// UUID or name.
    pub bucket: Option<String>,
}

/// The remains of a lost instance: its newest backup, and its volumes.
#[derive(Debug, Clone)]
pub struct Remains {
    /// Its newest complete backup.
    pub newest: Option<BackupView>,
    /// `None` if its events are not kept any more.
    pub lost_at: Option<Timestamp>,
    /// The volumes that come back with it, each with the backup that it is made of.
    pub volumes: Vec<(ReturningMount, Option<BackupView>)>,
    /// Names of the other volumes that it had.
    pub volumes_lost: Vec<String>,
}

impl Backups {
    /// The remains of one of the caller's lost instances.
    pub fn remains(&self, caller: &Caller, of: &Selector) -> Result<Remains, Error> {
        self.db.read(|rows| {
            let instance = find(rows, caller.user, of)?;
            check_lost(rows, instance.id)?;
            let names = names(rows, caller.user)?;
            let view = |backup| self.view(&names, backup);
            let returning = Returning::of(rows, &instance, complete_of_volume)?;
            let volumes = returning.back.into_iter().map(|mut mount| {
                let from = mount.from.take().map(view);
                (mount, from)
            });
            Ok(Remains {
                newest: complete(rows, &instance, None)?.map(view),
                lost_at: returning.lost_at,
                volumes: volumes.collect(),
                volumes_lost: returning.lost,
            })
        })
    }

    /// The caller's backups that a filter lets pass, the newest first. Those of an instance or a volume that was deleted
    /// are found by its id.
    pub fn list(&self, caller: &Caller, wanted: &BackupFilter) -> Result<Vec<BackupView>, Error> {
        let owner = caller.user;
        self.db.read(|rows| {
            let instance = match &wanted.instance {
                Some(Selector::Id(id)) => Some(*id),
                Some(selector) => Some(find(rows, owner, selector)?.id),
                None => None,
            };
            let volume = match &wanted.volume {
                Some(named) => Some(volumes::id(rows, owner, named)?),
                None => None,
            };
            let within = wanted.bucket.as_ref();
            let within = within.map(|named| bucket(rows, owner, named));
            let within = within.transpose()?.map(|bucket| bucket.id);
            let names = names(rows, owner)?;
            let mut found = backups_of(rows, owner)?;
            found.retain(|backup| {
                !backup.is_deleted()
                    && instance.is_none_or(|id| backup.of.instance() == Some(id))
                    && volume.is_none_or(|id| backup.of.volume() == Some(id))
                    && within.is_none_or(|id| id == backup.bucket)
            });
            found.sort_by_key(|backup| std::cmp::Reverse((backup.created_at, backup.id)));
            Ok(found
                .into_iter()
                .map(|backup| self.view(&names, backup))
                .collect())
        })
    }

    /// One of the caller's backups.
    pub fn get(&self, caller: &Caller, id: BackupId) -> Result<BackupView, Error> {
        self.db.read(|rows| {
            let found = backup(rows, caller.user, id)?;
            Ok(self.view(&names(rows, caller.user)?, found))
        })
    }

    /// One of the caller's backups that is complete.
    pub fn source(&self, caller: &Caller, id: BackupId) -> Result<Backup, Error> {
        let found = self.db.read(|rows| backup(rows, caller.user, id))?;
        if !matches!(found.state, BackupState::Done(_)) {
            let state = found.state_word();
            return Err(Error::Refused(format!(
                "the state of the backup is {state}"
            )));
        }
        Ok(found)
    }

    pub(crate) fn view(&self, names: &BTreeMap<BucketId, String>, backup: Backup) -> BackupView {
        let progress = self.progress.lock().get(&backup.id).cloned();
        let is_running = matches!(backup.state, BackupState::Running(_));
        BackupView {
            bucket_name: names.get(&backup.bucket).cloned().unwrap_or_default(),
            progress: progress.filter(|words| is_running && !words.is_empty()),
            backup,
        }
    }
}

fn names(rows: &impl Read, owner: UserId) -> Result<BTreeMap<BucketId, String>, Error> {
    let buckets = buckets_of(rows, owner)?.into_iter();
    Ok(buckets
        .map(|bucket| (bucket.id, bucket.name.to_string()))
        .collect())
}

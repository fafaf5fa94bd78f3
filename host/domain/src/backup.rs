//! Backups: copies of the disks of instances and of volumes, outside all nodes, in buckets of their users.

use super::capacity::{CpuTier, Size};
use super::ids::{BackupId, BucketId, InstanceId, SnapshotId, UserId, VolumeId};
use super::name::Name;
use super::secret::Encrypted;
use super::snapshot::PlanRequest;
use super::time::Timestamp;
use super::volume::or_none;
use serde::{Deserialize, Serialize};

/// A bucket of a user in an S3-compatible object store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    pub id: BucketId,
    pub owner: UserId,
    /// Unique among the owner's buckets.
    pub name: Name,
    pub address: BucketAddress,
    /// The access keys of the object store, and the key that encrypts and authenticates backups.
    pub secrets: Encrypted,
    /// The key of backups, encrypted with the user's passphrase, in text. Each manifest has it.
    pub wrapped_key: String,
    pub created_at: Timestamp,
}

/// The place of a bucket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BucketAddress {
    /// A URL without a path.
    pub endpoint: String,
    pub region: String,
    pub bucket: String,
    /// The part before the first slash of all keys of objects.
    pub prefix: String,
}

/// A backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backup {
    pub id: BackupId,
    pub owner: UserId,
    pub bucket: BucketId,
    pub of: BackedUp,
    /// By the system's clock.
    pub created_at: Timestamp,
    pub state: BackupState,
    /// The next task of the worker, and its time.
    pub work: Option<BackupWork>,
    /// Why the last attempt failed, in words for the user.
    pub reason: Option<String>,
    /// The last time at which its content was read back and was right, by the system's clock.
    pub verified_at: Option<Timestamp>,
    /// Time of the run of a plan that made it, by Wharf's own clock. A later one of the instance has a later time.
    pub planned: Option<Timestamp>,
}

/// The instance or the volume that a backup is of, as it was then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackedUp {
    pub what: BackupOf,
    pub name: Name,
    pub cpu_tier: CpuTier,
    /// The kind of engine, which determines the form of the content.
    pub engine_kind: String,
}

/// The kinds of things that have backups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum BackupOf {
    Instance {
        id: InstanceId,
        flavor: String,
        size: Size,
    },
    Volume {
        id: VolumeId,
        size_gib: u32,
    },
}

impl BackedUp {
    /// The id of its instance or of its volume, in one form.
    pub fn subject(&self) -> InstanceId {
        match self.what {
            BackupOf::Instance { id, .. } => id,
            BackupOf::Volume { id, .. } => id.into(),
        }
    }

    /// Its instance, if it is of one.
    pub fn instance(&self) -> Option<InstanceId> {
        match self.what {
            BackupOf::Instance { id, .. } => Some(id),
            BackupOf::Volume { .. } => None,
        }
    }

    /// Its volume, if it is of one.
    pub fn volume(&self) -> Option<VolumeId> {
        match self.what {
            BackupOf::Instance { .. } => None,
            BackupOf::Volume { id, .. } => Some(id),
        }
    }
}

/// The state of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum BackupState {
    /// On its way: that of an instance from this snapshot, that of a volume from the volume itself.
    Running(Option<SnapshotId>),
    Done(StoredBytes),
    /// There is none. Objects of it may be left while there is work.
    Failed,
}

/// The sizes of a complete backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredBytes {
    /// Of the content.
    pub content: u64,
    /// Of the object, which is compressed and encrypted.
    pub object: u64,
    /// By the system's clock.
    pub at: Timestamp,
}

/// Work on a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupWork {
    pub what: BackupTask,
    /// The number of attempts that failed.
    pub failed: u32,
    /// The time of the next attempt, by Wharf's own clock.
    pub due: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum BackupTask {
    /// Sends the content.
    Send,
    /// Reads the content back.
    Verify,
    /// Removes the objects, and then the row.
    Remove,
}

impl BackupWork {
    /// Work that is due at once.
    pub fn new(what: BackupTask, now: Timestamp) -> Self {
        Self {
            what,
            failed: 0,
            due: now,
        }
    }
}

impl Backup {
    /// The word for its state.
    pub fn state_word(&self) -> &'static str {
        match self.state {
            BackupState::Running(_) => "running",
            BackupState::Done(_) => "done",
            BackupState::Failed => "failed",
        }
    }

    /// Whether it is being removed, so that its user sees it no more.
    pub fn is_deleted(&self) -> bool {
        self.work
            .is_some_and(|work| work.what == BackupTask::Remove)
    }

    /// Its sizes, if it is complete.
    pub fn stored(&self) -> Option<StoredBytes> {
        match self.state {
            BackupState::Done(stored) => Some(stored),
            BackupState::Running(_) | BackupState::Failed => None,
        }
    }
}

/// A backup as rows have it until format 11, when only instances had some.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceBackup {
    pub id: BackupId,
    pub owner: UserId,
    pub bucket: BucketId,
    pub instance: InstanceId,
    pub name: Name,
    pub flavor: String,
    pub cpu_tier: CpuTier,
    pub size: Size,
    pub engine_kind: String,
    pub created_at: Timestamp,
    pub state: InstanceBackupState,
    pub work: Option<BackupWork>,
    pub reason: Option<String>,
    pub verified_at: Option<Timestamp>,
    // Rows of a still earlier version end before it.
    #[serde(deserialize_with = "or_none")]
    pub planned: Option<Timestamp>,
}

/// The state of an [`InstanceBackup`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum InstanceBackupState {
    Running(SnapshotId),
    Done(StoredBytes),
    Failed,
}

impl From<InstanceBackup> for Backup {
    fn from(old: InstanceBackup) -> Self {
        Self {
            id: old.id,
            owner: old.owner,
            bucket: old.bucket,
            of: BackedUp {
                what: BackupOf::Instance {
                    id: old.instance,
                    flavor: old.flavor,
                    size: old.size,
                },
                name: old.name,
                cpu_tier: old.cpu_tier,
                engine_kind: old.engine_kind,
            },
            created_at: old.created_at,
            state: match old.state {
                InstanceBackupState::Running(snapshot) => BackupState::Running(Some(snapshot)),
                InstanceBackupState::Done(stored) => BackupState::Done(stored),
                InstanceBackupState::Failed => BackupState::Failed,
            },
            work: old.work,
            reason: old.reason,
            verified_at: old.verified_at,
            planned: old.planned,
        }
    }
}

/// The content of a new instance or volume that comes from a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentOf {
    pub backup: BackupId,
    /// The kind of engine that the content is of. No other one takes it.
    pub engine_kind: String,
}

/// The times at which Wharf makes backups of an instance, their bucket, and those that it keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupPlan {
    pub bucket: BucketId,
    pub times: PlanRequest,
}

impl AsRef<PlanRequest> for BackupPlan {
    fn as_ref(&self) -> &PlanRequest {
        &self.times
    }
}

/// The kind of an event of an instance or a volume that is about its backups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum BackupEvent {
    /// The user requested one.
    Created,
    /// The plan requested one.
    Planned,
    /// One is complete.
    Done,
    /// There is none, for this reason.
    Failed(String),
    /// The user set a plan, in these words.
    PlanSet(String),
    /// The user removed the plan.
    PlanRemoved,
    /// The plan was due and made none, for this reason.
    PlanFailed(String),
}

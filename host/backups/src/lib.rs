//! Backups: the use cases of buckets and backups, and the worker that sends, verifies and removes them.

mod buckets;
mod create;
mod plan;
mod reach;
mod read;
mod receive;
mod rows;
mod secrets;
mod send;
mod volumes;
mod worker;

pub use buckets::{BucketView, NewBucket};
pub use plan::{BackedUpByPlan, BackupPlanView};
pub use reach::{FoundBucket, NetworkReach, Objects, Reach};
pub use read::{BackupFilter, BackupView, Remains};
pub use rows::{BACKUP_PLANS, BACKUPS, BUCKETS, TABLES, admit_volumes};
pub use secrets::{renew_secrets, unreadable};
pub use worker::run;

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Notify;
use wharf_accounts::Accounts;
use wharf_buckets::{BackupKey, BucketError};
use wharf_db::Db;
use wharf_domain::backup::Bucket;
use wharf_domain::ids::BackupId;
use wharf_ground::clock::Clock;
use wharf_ground::random::Random;
use wharf_ground::vault::Vault;
use wharf_instances::App;

/// The buckets and backups of all users.
pub struct Backups {
    app: Arc<App>,
    db: Db,
    clock: Clock,
    random: Random,
    vault: Vault,
    accounts: Arc<Accounts>,
    reach: Arc<dyn Reach>,
    /// Words about the progress of those under way.
    progress: Mutex<BTreeMap<BackupId, String>>,
    /// Notified of new work.
    work: Notify,
}

impl Backups {
    /// The backups in the database of an application, which takes content from them.
    pub fn new(
        app: Arc<App>,
        random: Random,
        accounts: Arc<Accounts>,
        reach: Arc<dyn Reach>,
    ) -> Arc<Self> {
        let backups = Arc::new(Self {
            db: app.db().clone(),
            clock: app.clock().clone(),
            vault: app.vault().clone(),
            app: Arc::clone(&app),
            random,
            accounts,
            reach,
            progress: Mutex::default(),
            work: Notify::new(),
        });
        let store = Arc::downgrade(&backups);
        app.serve_content(store);
        backups
    }

    /// A bucket, and the key of its backups.
    fn open(&self, bucket: &Bucket) -> Result<(Arc<dyn Objects>, BackupKey), BucketError> {
        let (keys, key) = secrets::open(&self.vault, bucket)?;
        Ok((self.reach.bucket(&bucket.address, keys)?, key))
    }
}

//! Backups: the use cases of buckets and backups, and the worker that sends, verifies and removes them.

mod buckets;
mod create;
mod read;
mod receive;
mod rows;
mod secrets;
mod send;
mod worker;

pub use buckets::{BucketView, NewBucket};
pub use read::BackupView;
pub use rows::TABLES;
pub use secrets::{renew_secrets, unreadable};
pub use worker::run;

use parking_lot::Mutex;
use rustls::ClientConfig;
use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::sync::Arc;
use tokio::sync::Notify;
use wharf_accounts::Accounts;
use wharf_buckets::{BackupKey, BucketClient, BucketError};
use wharf_db::Db;
use wharf_domain::backup::Bucket;
use wharf_domain::ids::BackupId;
use wharf_ground::clock::Clock;
use wharf_ground::random::Random;
use wharf_ground::vault::Vault;
use wharf_instances::App;
use wharf_outbound::{CheckedClient, Outbound};

/// The buckets and backups of all users.
pub struct Backups {
    app: Arc<App>,
    db: Db,
    clock: Clock,
    random: Random,
    vault: Vault,
    accounts: Arc<Accounts>,
    outbound: Outbound,
    /// None without trusted certificates in the operating system.
    http: Option<CheckedClient>,
    /// Words about the progress of those under way.
    progress: Mutex<BTreeMap<BackupId, String>>,
    /// Notified of new work.
    work: Notify,
}

impl Backups {
    /// The backups in the database of an application, which takes content from them. `tls` is that of the requests, or
    /// the reason for which no bucket can be trusted.
    pub fn new(
        app: Arc<App>,
        random: Random,
        accounts: Arc<Accounts>,
        outbound: Outbound,
        tls: Result<ClientConfig, rustls::Error>,
    ) -> Arc<Self> {
        let tls = tls.map_err(Box::<dyn StdError>::from);
        let http = tls.and_then(|tls| CheckedClient::new(outbound.clone(), tls));
        let http = http.inspect_err(|error| tracing::warn!(%error, "buckets cannot be reached"));
        let backups = Arc::new(Self {
            db: app.db().clone(),
            clock: app.clock().clone(),
            vault: app.vault().clone(),
            app: Arc::clone(&app),
            random,
            accounts,
            outbound,
            http: http.ok(),
            progress: Mutex::default(),
            work: Notify::new(),
        });
        app.serve_content(Arc::clone(&backups) as _);
        backups
    }

    /// A client of a bucket, and the key of its backups.
    fn open(&self, bucket: &Bucket) -> Result<(BucketClient, BackupKey), BucketError> {
        let (keys, key) = secrets::open(&self.vault, bucket)?;
        let client = BucketClient::new(&bucket.address, keys, self.http()?)?;
        Ok((client, key))
    }

    fn http(&self) -> Result<CheckedClient, BucketError> {
        let missing = "the service has no trusted certificates";
        self.http
            .clone()
            .ok_or_else(|| BucketError::Other(missing.to_owned()))
    }
}

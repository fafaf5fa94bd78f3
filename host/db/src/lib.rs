//! Durable rows. The only place that knows redb.
//!
//! Reads see the last commit. Writes are closures that decide from the present rows and return
//! changes; changes of many callers share one durable commit ([`writer`]).

mod apply;
mod audit;
mod backup;
mod budget;
mod careful;
mod changes;
mod codec;
mod commit;
mod disk;
mod draft;
mod events;
mod findings;
mod fsck;
mod guard;
mod history;
mod inspect;
mod key;
mod metrics;
mod migrate;
mod open;
mod pages;
mod projection;
mod read;
mod recorded;
mod rows;
mod schema;
mod scrub;
mod table;
mod tables;
#[cfg(test)]
mod tests;
mod tree;
mod upgrade;
mod wakes;
mod writer;

pub use backup::{Copied, restore};
pub use changes::Changes;
pub use commit::{CommitTimes, TimeSource, View};
pub use disk::Disk;
pub use draft::{Draft, Followed};
pub use findings::{Findings, FsckFinding};
pub use guard::exit_on_damage;
pub use inspect::{Inspected, inspect, repair};
pub use key::{KeyPart, TableKey};
pub use metrics::DbMetrics;
pub use open::rows_in;
pub use projection::Projection;
pub use read::Read;
pub use rows::{AuditHead, BilledAs, BilledKind, EventRow, KeptClaim, MoveRow, ProvisioningSpec};
pub use schema::{DbSchema, FeatureTables, MigrationStep};
pub use scrub::Scrubbed;
pub use table::{Declared, Entries, Facts, Table, TableRow};
pub use tables::{
    AUDIT, BILLED_AS, CLAIMS, CORRECTIONS, EVENTS, INSTANCES, KEY_FINGERPRINT, KeptTable, LOST,
    MOVES, OF_USER, PROVISIONING_SPECS, RECORDED, SNAPSHOTS, SNAPSHOTS_OF, SNAPSHOTS_ON,
    SNAPSHOTS_OWNED, VOLUME_NAMES, VOLUME_PLACES, VOLUMES, VOLUMES_ON,
};
pub use tree::{ReadRows, Rows};
pub use wakes::TopicCounts;
pub use writer::BatchWriter;

use budget::Budget;
use commit::WriteAllowance;
use redb::StorageBackend;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::watch;
use wharf_domain::error::Error;
use wharf_domain::ids::UserId;

/// The open database.
#[derive(Clone)]
pub struct Db {
    file: Arc<redb::Database>,
    schema: &'static DbSchema,
    writer: writer::Writer,
    wakes: Arc<wakes::Wakes>,
    disk: Arc<Disk>,
    /// None without a file, as in tests.
    pages: Option<Arc<pages::Pages>>,
}

/// The bounds of [`Db::write`].
#[derive(Debug, Clone, Copy, Default)]
pub struct DbBounds {
    /// Free space in MiB on the disk below which it is refused; 0 for none.
    pub disk_reserve_mib: u64,
    /// Rows that outlive their object of one user in a day; 0 for no limit.
    pub records_per_user: u32,
}

/// Why the database cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum DbOpenError {
    /// Another process holds it.
    #[error("the database {0} is in use by another process")]
    InUse(String),
    /// A newer version of Wharf wrote it.
    #[error("the database has format {found}; this version of Wharf knows formats up to {known}")]
    Newer {
        /// Format of the file.
        found: u64,
        /// Format of this version.
        known: u64,
    },
    /// Its format is too old to be moved.
    #[error(
        "the database has format {found}, which this version of Wharf cannot move to its own; start \
         and stop a version in between once"
    )]
    Older {
        /// Format of the file.
        found: u64,
    },
    /// The earlier version did not close it, so the latest changes are in that version's journal.
    #[error(
        "the database has format 2, and the version of Wharf that wrote it did not close it: its \
         latest changes are only in wharf.journal beside it; start and stop that version once"
    )]
    NotClosed,
    /// The file is missing, and other files show that it was there.
    #[error(
        "the database {path} is missing, but {remains} shows that there was one: restore it from a \
         backup; to start afresh on purpose, move {remains} away"
    )]
    Missing {
        /// Where the file should be.
        path: PathBuf,
        /// Files of earlier starts.
        remains: String,
    },
    /// The file has no content. Wharf never leaves one like it.
    #[error(
        "the database {0} is empty, so its content was lost: restore it from a backup; to start \
         afresh on purpose, move the content of its directory away"
    )]
    Empty(PathBuf),
    /// A migration does not fit the disk.
    #[error(
        "the database {path} must be migrated to a new file, for which {needed} MiB are needed beside it \
         with the reserve of the disk, and {free} MiB are free: make room, or give the space of removed rows back with `wharf compact` \
         of the version before"
    )]
    NoRoom {
        /// The file.
        path: PathBuf,
        /// Size of the new file in MiB, with the reserve of the disk.
        needed: u64,
        /// Free space in MiB.
        free: u64,
    },
    /// The file is of another program.
    #[error(
        "{0} is not a database of Wharf: restore the database from a backup; to start afresh on \
         purpose, move the content of its directory away"
    )]
    Foreign(PathBuf),
    /// A file has the name already.
    #[error("{0} exists and is never replaced: choose another name, or move it away")]
    Present(PathBuf),
    /// The file has wrong content.
    #[error("{}", guard::damage(Some(path), why))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The first error.
        why: String,
    },
    /// The file cannot be read or written.
    #[error("cannot read or write the database {path}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The rows cannot be read or written.
    #[error(transparent)]
    Rows(#[from] Error),
}

impl DbOpenError {
    /// The error and all its causes.
    pub fn chain(&self) -> String {
        wharf_domain::error::chain(self)
    }
}

impl Db {
    /// Opens or makes the database in a directory, which has the tables of a schema, and loads the
    /// projection of its claims. `clock` gives the time to use cases.
    pub fn open(
        dir: &Path,
        schema: &'static DbSchema,
        projection: Box<dyn Projection>,
        clock: TimeSource,
        bounds: DbBounds,
    ) -> Result<Self, DbOpenError> {
        let open::Opened { rows, pages } = open::open(dir, bounds.disk_reserve_mib, schema)?;
        let damaged = |why| DbOpenError::Damaged {
            path: open::path_in(dir),
            why,
        };
        let allowance = WriteAllowance {
            disk: Arc::new(Disk::new(dir.to_owned(), bounds.disk_reserve_mib)),
            budget: Budget::new(bounds.records_per_user),
        };
        let opened = guard::guarded(|| Self::on(rows, schema, projection, clock, allowance));
        let opened = opened.map_err(damaged)?;
        let opened = opened.map_err(|error| match error {
            DbOpenError::Rows(error) => damaged(error.chain().to_string()),
            other => other,
        })?;
        Ok(Self { pages, ..opened })
    }

    /// Opens or makes the database on a backend, in place of a file. Writes wait until the caller commits
    /// them by [`BatchWriter::step`].
    pub fn open_on(
        backend: impl StorageBackend,
        schema: &'static DbSchema,
        projection: Box<dyn Projection>,
        clock: TimeSource,
        bounds: DbBounds,
    ) -> Result<(Self, BatchWriter), DbOpenError> {
        let open::Opened { rows, pages } = open::open_on(backend, schema)?;
        let allowance = WriteAllowance {
            disk: Arc::default(),
            budget: Budget::new(bounds.records_per_user),
        };
        let opened = guard::guarded(|| Self::stepped(rows, schema, projection, clock, allowance));
        let (db, batches) = opened.map_err(codec::internal)??;
        Ok((Self { pages, ..db }, batches))
    }

    fn on(
        file: redb::Database,
        schema: &'static DbSchema,
        projection: Box<dyn Projection>,
        clock: TimeSource,
        allowance: WriteAllowance,
    ) -> Result<Self, DbOpenError> {
        let (db, batches) = Self::stepped(file, schema, projection, clock, allowance)?;
        db.writer.start(batches)?;
        Ok(db)
    }

    fn stepped(
        file: redb::Database,
        schema: &'static DbSchema,
        mut projection: Box<dyn Projection>,
        clock: TimeSource,
        allowance: WriteAllowance,
    ) -> Result<(Self, BatchWriter), DbOpenError> {
        recorded::fill(&file, schema)?;
        let file = Arc::new(file);
        projection.load(&ReadRows::open(&file)?)?;
        let wakes = Arc::<wakes::Wakes>::default();
        let disk = Arc::clone(&allowance.disk);
        let written = commit::Written {
            file: Arc::clone(&file),
            schema,
            allowance,
        };
        let (writer, batches) = writer::Writer::new(written, projection, clock, Arc::clone(&wakes));
        let db = Self {
            file,
            schema,
            writer,
            wakes,
            disk,
            pages: None,
        };
        Ok((db, batches))
    }

    /// Gives the space of removed rows back to the file system, and that of the files that earlier
    /// migrations kept. No process may have the database open. Returns the size in bytes before and after.
    pub fn compact(dir: &Path, schema: &'static DbSchema) -> Result<(u64, u64), DbOpenError> {
        let inode = upgrade::inode(dir);
        let mut file = open::open(dir, 0, schema)?.rows;
        let before = Self::bytes_in(dir);
        while file.compact().map_err(codec::internal)? {}
        // A file that this opening kept is the way back from it.
        let removed = upgrade::remove_kept(dir, inode, schema)?;
        drop(file);
        Ok((before + removed, Self::bytes_in(dir)))
    }

    /// Reads a consistent view of the last commit.
    pub fn read<T>(&self, f: impl FnOnce(&ReadRows) -> Result<T, Error>) -> Result<T, Error> {
        // A page that is damaged may make redb panic.
        guard::guarded(|| f(&ReadRows::open(&self.file)?))
            .unwrap_or_else(|why| Err(codec::internal(format!("reading failed: {why}"))))
    }

    /// The number of commits since the database was opened. A snapshot that is opened after this
    /// call has all of them, so rows read from it hold until the number changes.
    pub fn commits(&self) -> u64 {
        self.writer.commits()
    }

    /// Changes after each commit with an event of this owner.
    pub fn events_of(&self, owner: UserId) -> watch::Receiver<()> {
        self.wakes.of(owner)
    }

    /// Changes after each commit with a change of a topic of this owner.
    pub fn topics_of(&self, owner: UserId) -> watch::Receiver<TopicCounts> {
        self.wakes.topics_of(owner)
    }

    /// The size of the file in a directory, in bytes; 0 if the operating system does not say.
    pub fn bytes_in(dir: &Path) -> u64 {
        std::fs::metadata(open::path_in(dir)).map_or(0, |file| file.len())
    }

    /// Metrics of writes.
    pub fn metrics(&self) -> &DbMetrics {
        self.writer.metrics()
    }

    /// The disk of the file.
    pub fn disk(&self) -> &Disk {
        &self.disk
    }

    /// Decides and writes, atomically and durably, before it returns. Fails without a write if the disk
    /// has less than its reserve, or a user whose rows change has used up the budget for rows.
    ///
    /// `decide` runs on the writer's thread. It may run twice, if the first commit failed with
    /// another use case in it, and must not wait for anything.
    pub async fn write<T: Send + 'static>(
        &self,
        decide: impl Fn(&View<'_>) -> Result<(T, Changes), Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.writer.write(false, decide).await
    }

    /// [`Self::write`] that room on the disk and budgets never refuse: for changes that free something,
    /// that end access, that the reconciler needs, by which users sign in, and for the operator's.
    pub async fn write_essential<T: Send + 'static>(
        &self,
        decide: impl Fn(&View<'_>) -> Result<(T, Changes), Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.writer.write(true, decide).await
    }

    /// Whether writes can succeed. After an error of the disk they cannot: only the next opening
    /// shows what the disk has kept.
    pub fn takes_writes(&self) -> bool {
        !self.writer.is_lost()
    }

    /// Waits until it takes no more writes.
    pub async fn lost(&self) {
        self.writer.lost().await;
    }

    /// Writes the last commit to a new file, which is a database too, while others read and write.
    /// The file gets its name when it is complete. `wanted` turns false to end early.
    pub fn backup(&self, path: &Path, wanted: impl Fn() -> bool) -> Result<Copied, DbOpenError> {
        let format = self.schema.format();
        let copied = guard::guarded(|| backup::backup(&self.file, path, format, wanted));
        copied.map_err(|why| DbOpenError::Rows(codec::internal(why)))?
    }

    /// Checks the chain of the audit log. Returns its end, and one line for each contradiction.
    pub fn verify_audit(
        &self,
        known: Option<AuditHead>,
    ) -> Result<(AuditHead, Vec<String>), Error> {
        self.read(|rows| audit::verify(rows, known))
    }
}

//! Durable rows. The only place that knows redb.
//!
//! Reads see the last commit. Writes are closures that decide from the present rows and return
//! changes; changes of many callers share one durable commit ([`writer`]).

mod apply;
mod batch;
mod codec;
mod commit;
mod fsck;
mod key;
mod migrate;
mod open;
mod projection;
mod read;
mod rows;
mod table;
mod tables;
#[cfg(test)]
mod tests;
mod writer;

pub use batch::{Change, Changes};
pub use commit::View;
pub use projection::Projection;
pub use read::Read;
pub use rows::{KeyRow, ProvisioningSpec};
pub use table::Snapshot;

use std::path::Path;
use std::sync::Arc;
use wharf_domain::error::Error;

/// The open database.
#[derive(Clone)]
pub struct Db {
    file: Arc<redb::Database>,
    writer: writer::Writer,
}

/// Why the database cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process holds it.
    #[error("the database in {0} is in use by another process")]
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
        "the database is of an earlier version of Wharf, which did not close it; start and stop \
         that version once"
    )]
    NotClosed,
    /// The file or its rows cannot be read.
    #[error("{0}")]
    Broken(String),
}

impl Db {
    /// Opens or makes the database in a directory, and loads the projection of its claims.
    pub fn open(dir: &Path, projection: Box<dyn Projection>) -> Result<Self, OpenError> {
        Self::on(open::open(dir)?, projection)
    }

    fn on(file: redb::Database, mut projection: Box<dyn Projection>) -> Result<Self, OpenError> {
        let file = Arc::new(file);
        projection.load(&Snapshot::open(&file)?)?;
        let writer = writer::Writer::start(Arc::clone(&file), projection)
            .map_err(|error| OpenError::Broken(error.to_string()))?;
        Ok(Self { file, writer })
    }

    /// Reads a consistent view of the last commit.
    pub fn read<T>(&self, f: impl FnOnce(&Snapshot) -> Result<T, Error>) -> Result<T, Error> {
        f(&Snapshot::open(&self.file)?)
    }

    /// The number of commits since the database was opened. A snapshot that is opened after this
    /// call has all of them, so rows read from it hold until the number changes.
    pub fn commits(&self) -> u64 {
        self.writer.commits()
    }

    /// Decides and writes, atomically and durably, before it returns.
    ///
    /// `decide` runs on the writer's thread. It may run twice, if the first commit failed with
    /// another use case in it, and must not wait for anything.
    pub async fn write<T: Send + 'static>(
        &self,
        decide: impl Fn(&View<'_>) -> Result<(T, Changes), Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.writer.write(decide).await
    }

    /// [`Self::write`] for callers outside the async runtime.
    pub fn write_blocking<T: Send + 'static>(
        &self,
        decide: impl Fn(&View<'_>) -> Result<(T, Changes), Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.writer.write_blocking(decide)
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

    /// Checks every table against the others; one line for each contradiction.
    pub fn fsck(&self) -> Result<Vec<String>, Error> {
        self.read(fsck::check)
    }
}

//! The thread that commits: it drains its queue into a batch, commits the batch, and answers.

use super::changes::Changes;
use super::codec::internal;
use super::commit::{
    BatchMember, CommitSignals, Committer, TimeSource, UndecidedWrite, View, Written,
};
use super::metrics::DbMetrics;
use super::projection::Projection;
use super::wakes::Wakes;
use prometheus_client::metrics::gauge::Gauge;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{oneshot, watch};
use wharf_domain::error::Error;

/// The most use cases in one commit; bounds how long the first of them waits.
const BATCH: usize = 1024;
/// The most use cases in the queue, so that the next batches are ready. Further callers wait for a place.
pub(super) const QUEUE: usize = 4 * BATCH;

/// Takes use cases. The last clone waits for the thread to end, so that the file is closed then.
#[derive(Clone)]
pub struct Writer(Arc<Shared>);

struct Shared {
    /// Present until it is dropped.
    queue: Option<Sender<Box<dyn BatchMember>>>,
    /// The thread that commits; none if the caller of [`BatchWriter::step`] does.
    thread: OnceLock<JoinHandle<()>>,
    commits: Arc<AtomicU64>,
    lost: watch::Receiver<bool>,
    metrics: DbMetrics,
}

/// The end of a writer that commits.
pub struct BatchWriter {
    committer: Committer,
    jobs: Receiver<Box<dyn BatchMember>>,
    queued: Gauge,
    batch: Vec<Box<dyn BatchMember>>,
}

impl Writer {
    /// A writer, and the end that commits what it takes.
    pub fn new(
        written: Written,
        projection: Box<dyn Projection>,
        clock: TimeSource,
        wakes: Arc<Wakes>,
    ) -> (Self, BatchWriter) {
        let commits = Arc::<AtomicU64>::default();
        let (losing, lost) = watch::channel(false);
        let metrics = DbMetrics::new();
        let signals = CommitSignals {
            commits: Arc::clone(&commits),
            wakes,
            metrics: metrics.clone(),
        };
        let (queue, jobs) = channel(QUEUE);
        let batches = BatchWriter {
            committer: Committer::new(written, projection, clock, signals, losing),
            jobs,
            queued: metrics.queued.clone(),
            batch: Vec::new(),
        };
        let writer = Self(Arc::new(Shared {
            queue: Some(queue),
            thread: OnceLock::new(),
            commits,
            lost,
            metrics,
        }));
        (writer, batches)
    }

    /// Commits on a thread of its own from now on.
    pub fn start(&self, batches: BatchWriter) -> Result<(), Error> {
        let thread = std::thread::Builder::new()
            .name("db-writer".to_owned())
            .spawn(move || batches.run())
            .map_err(internal)?;
        self.0.thread.get_or_init(|| thread);
        Ok(())
    }

    /// See [`super::Db::commits`].
    pub fn commits(&self) -> u64 {
        self.0.commits.load(Ordering::SeqCst)
    }

    /// See [`super::Db::metrics`].
    pub fn metrics(&self) -> &DbMetrics {
        &self.0.metrics
    }

    /// Whether the file takes no more writes.
    pub fn is_lost(&self) -> bool {
        // A thread that panicked has dropped the sender.
        *self.0.lost.borrow() || self.0.lost.has_changed().is_err()
    }

    /// Waits until the file takes no more writes.
    pub async fn lost(&self) {
        // The thread has the sender. An error means that it panicked.
        let _ = self.0.lost.clone().wait_for(|lost| *lost).await;
    }

    /// See [`super::Db::write`] and [`super::Db::write_essential`].
    pub async fn write<T: Send + 'static>(
        &self,
        essential: bool,
        decide: impl Fn(&View<'_>) -> Result<(T, Changes), Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        self.submit(Box::new(UndecidedWrite::new(decide, essential, reply)))
            .await;
        answer.await.map_err(internal)?
    }

    /// Waits for a place in the queue. A job that is not taken is dropped with its reply, which the
    /// caller sees.
    async fn submit(&self, job: Box<dyn BatchMember>) {
        if let Some(queue) = &self.0.queue
            && let Ok(place) = queue.reserve().await
        {
            self.0.metrics.queued.inc();
            place.send(job);
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Closing the queue ends the thread when it is empty.
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // The thread has nothing to report.
            let _ = thread.join();
        }
    }
}

impl BatchWriter {
    /// Commits until the queue ends.
    fn run(mut self) {
        while self.jobs.blocking_recv_many(&mut self.batch, BATCH) > 0 {
            self.commit();
        }
    }

    /// Waits for a batch and commits it. Returns false at the end of the queue.
    pub async fn step(&mut self) -> bool {
        let taken = self.jobs.recv_many(&mut self.batch, BATCH).await > 0;
        self.commit();
        taken
    }

    /// Commits the batch, and answers its members.
    fn commit(&mut self) {
        self.queued
            .dec_by(i64::try_from(self.batch.len()).unwrap_or(i64::MAX));
        self.committer.run(&mut self.batch);
        self.batch.drain(..).for_each(|job| job.answer());
    }
}

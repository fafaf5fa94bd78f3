//! One durable transaction for a batch of use cases.

use super::budget::Budget;
use super::changes::Changes;
use super::codec::internal;
use super::disk::Disk;
use super::draft::Draft;
use super::metrics::DbMetrics;
use super::projection::{Projected, Projection};
use super::schema::DbSchema;
use super::wakes::{Wakes, Woken};
use redb::WriteTransaction;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tokio::sync::{oneshot, watch};
use wharf_domain::error::Error;
use wharf_domain::time::Timestamp;

/// The times of one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CommitTimes {
    /// Wharf's own time, for money, deadlines and pauses. Steps of the system's clock do not change it.
    pub now: Timestamp,
    /// The time of the system's clock, for people and for other machines.
    pub system: Timestamp,
}

impl CommitTimes {
    /// The times while both clocks agree.
    pub fn agreed(now: Timestamp) -> Self {
        Self { now, system: now }
    }

    /// The earlier of both. One wrong clock must not end or remove anything for good.
    pub fn earlier(self) -> Timestamp {
        self.now.min(self.system)
    }
}

/// Tells the time.
pub type TimeSource = Box<dyn Fn() -> CommitTimes + Send>;

/// The data that a use case decides from.
pub struct View<'a> {
    /// The rows as earlier members of the batch leave them.
    pub rows: &'a Draft<'a>,
    /// Wharf's own time of this decision, for money, deadlines and pauses.
    pub now: Timestamp,
    /// The time of the system's clock, for people and for other machines.
    pub system: Timestamp,
}

/// A use case on its way through a batch.
pub trait BatchMember: Send {
    /// Decides. Returns the changes, or none if the use case refused.
    fn decide(&mut self, view: &View<'_>) -> Option<Changes>;
    /// Whether the write is taken without room on the disk or in the budget of its user.
    fn is_essential(&self) -> bool;
    /// Replaces the decision, because it is not committed.
    fn fail(&mut self, error: Error);
    /// Answers the caller, after the commit.
    fn answer(self: Box<Self>);
}

/// A use case with its caller.
pub struct UndecidedWrite<T, F> {
    decide: F,
    essential: bool,
    decided: Option<Result<T, Error>>,
    reply: oneshot::Sender<Result<T, Error>>,
}

impl<T, F> UndecidedWrite<T, F> {
    /// A use case that has not decided yet.
    pub fn new(decide: F, essential: bool, reply: oneshot::Sender<Result<T, Error>>) -> Self {
        Self {
            decide,
            essential,
            decided: None,
            reply,
        }
    }
}

impl<T, F> BatchMember for UndecidedWrite<T, F>
where
    T: Send + 'static,
    F: Fn(&View<'_>) -> Result<(T, Changes), Error> + Send,
{
    fn decide(&mut self, view: &View<'_>) -> Option<Changes> {
        let (decided, changes) = match (self.decide)(view) {
            Ok((value, changes)) => (Ok(value), Some(changes)),
            Err(error) => (Err(error), None),
        };
        self.decided = Some(decided);
        changes
    }

    fn is_essential(&self) -> bool {
        self.essential
    }

    fn fail(&mut self, error: Error) {
        self.decided = Some(Err(error));
    }

    fn answer(self: Box<Self>) {
        let undecided = || Err(internal("a use case did not run"));
        // A caller that went away needs no answer; its changes hold.
        drop(self.reply.send(self.decided.unwrap_or_else(undecided)));
    }
}

type Decided = (WriteTransaction, Woken);

/// The room for writes that are not essential.
#[derive(Default)]
pub struct WriteAllowance {
    pub disk: Arc<Disk>,
    pub budget: Budget,
}

impl WriteAllowance {
    /// Fails if there is no room for these changes.
    fn admit(&self, changes: &Changes, now: Timestamp) -> Result<(), Error> {
        if changes.is_empty() {
            return Ok(());
        }
        self.disk.admit()?;
        self.budget.admit(changes, now)
    }
}

/// The file that a committer writes, and the bounds on it.
pub struct Written {
    pub file: Arc<redb::Database>,
    pub schema: &'static DbSchema,
    pub allowance: WriteAllowance,
}

/// The signals of a commit.
pub struct CommitSignals {
    /// Number of commits that readers can see.
    pub commits: Arc<AtomicU64>,
    pub wakes: Arc<Wakes>,
    pub metrics: DbMetrics,
}

/// Commits one batch after the other.
pub struct Committer {
    written: Written,
    projected: Projected,
    clock: TimeSource,
    signals: CommitSignals,
    /// Turns true when the file takes no more writes.
    lost: watch::Sender<bool>,
}

impl Committer {
    /// Takes a projection that is loaded.
    pub fn new(
        written: Written,
        projection: Box<dyn Projection>,
        clock: TimeSource,
        signals: CommitSignals,
        lost: watch::Sender<bool>,
    ) -> Self {
        Self {
            written,
            projected: Projected::new(projection),
            clock,
            signals,
            lost,
        }
    }

    /// Writes a batch. Each member then has its answer.
    pub fn run(&mut self, batch: &mut [Box<dyn BatchMember>]) {
        let Err(error) = self.commit(batch) else {
            return;
        };
        if self.is_lost() || batch.len() == 1 {
            tracing::error!(error = %error.chain(), "a write failed");
            let cause = Arc::new(error);
            for job in batch {
                job.fail(Error::caused("a write failed", Arc::clone(&cause)));
            }
            return;
        }
        // One member may have made the others fail: each gets a commit of its own.
        tracing::warn!(error = %error.chain(), members = batch.len(), "a batch failed; running its members singly");
        for alone in batch.chunks_mut(1) {
            self.run(alone);
        }
    }

    /// Writes all members in one durable transaction, or none.
    fn commit(&mut self, batch: &mut [Box<dyn BatchMember>]) -> Result<(), Error> {
        if self.is_lost() {
            return Err(internal("it takes no more writes"));
        }
        let decided = catch_unwind(AssertUnwindSafe(|| self.decide(batch)));
        let (txn, woken) = match decided.unwrap_or_else(|_| Err(internal("a batch panicked"))) {
            Ok(Some(decided)) => decided,
            Ok(None) => return Ok(()),
            Err(error) => {
                // After an error of the file redb refuses all transactions.
                if self.written.file.begin_write().is_err() {
                    self.give_up(&error);
                }
                self.projected.undo();
                return Err(error);
            }
        };
        let begin = Instant::now();
        let committed = catch_unwind(AssertUnwindSafe(|| commit_durably(txn)));
        self.signals
            .metrics
            .commits
            .observe(begin.elapsed().as_secs_f64());
        let committed = committed.unwrap_or_else(|_| Err(internal("a commit panicked")));
        match &committed {
            Ok(()) => {
                self.projected.keep();
                self.written.allowance.budget.keep((self.clock)().now);
                self.signals.commits.fetch_add(1, Ordering::SeqCst);
                self.signals.wakes.wake(&woken);
            }
            // Only the next opening shows what the disk has kept.
            Err(error) => self.give_up(error),
        }
        committed
    }

    /// Applies the decisions of all members. Returns none if that changed no row, and otherwise the
    /// owners that the changes concern too.
    fn decide(&mut self, batch: &mut [Box<dyn BatchMember>]) -> Result<Option<Decided>, Error> {
        let txn = self.written.file.begin_write().map_err(internal)?;
        let mut rows = Draft::open(&txn, self.written.schema)?;
        self.written.allowance.budget.undo();
        for job in batch {
            let CommitTimes { now, system } = (self.clock)();
            let view = View {
                rows: &rows,
                now,
                system,
            };
            // Caught here, because a transaction that a panic drops makes the next opening check
            // the whole file.
            let decided = catch_unwind(AssertUnwindSafe(|| job.decide(&view)));
            let decided = decided.map_err(|_| internal("a use case panicked"))?;
            let Some(mut changes) = decided else {
                continue;
            };
            changes.stamp(system);
            if !job.is_essential()
                && let Err(refusal) = self.written.allowance.admit(&changes, now)
            {
                job.fail(refusal);
                continue;
            }
            self.written.allowance.budget.note(&changes);
            rows.apply(changes, &mut self.projected)?;
        }
        let (changed, woken) = (rows.is_changed(), std::mem::take(&mut rows.woken));
        drop(rows);
        if !changed {
            txn.abort().map_err(internal)?;
            return Ok(None);
        }
        Ok(Some((txn, woken)))
    }

    fn is_lost(&self) -> bool {
        *self.lost.borrow()
    }

    fn give_up(&self, error: &Error) {
        tracing::error!(error = %error.chain(), "the database cannot be written any more");
        // Closing would write, and a damaged file may make redb panic twice, which aborts the process.
        std::mem::forget(Arc::clone(&self.written.file));
        self.lost.send_replace(true);
    }
}

/// Commits with redb's quick repair: the commit has the state of redb's allocator. So the file is not
/// read whole after a crash.
pub fn commit_durably(mut txn: WriteTransaction) -> Result<(), Error> {
    txn.set_quick_repair(true);
    txn.commit().map_err(internal)
}

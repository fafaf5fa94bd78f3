//! One durable transaction for a batch of use cases: durable in the journal, or in the file where the
//! journal has no room left.

use super::apply::Tables;
use super::batch::Changes;
use super::codec::internal;
use super::journal::{Journal, Period};
use super::read::{Read, Snapshot};
use super::versions::Versions;
use crate::domain::error::Error;
use crate::placement::Inventory;
use redb::{Durability, WriteTransaction};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tokio::sync::{oneshot, watch};

/// What a use case decides from: the rows as its batch has left them, and the inventory.
pub struct View<'a> {
    /// The rows.
    pub rows: &'a Tables<'a>,
    /// What is free.
    pub inventory: &'a Inventory,
}

/// A use case on its way through a batch.
pub trait Job: Send {
    /// A request made it.
    fn is_urgent(&self) -> bool;
    /// Decides; changes only if it said Ok.
    fn decide(&mut self, view: &View<'_>) -> Option<Changes>;
    /// What it decided is not committed.
    fn fail(&mut self, error: Error);
    /// Tells the caller, after the commit.
    fn answer(self: Box<Self>);
}

/// A use case, and who waits for it.
pub struct Waiting<T, F> {
    urgent: bool,
    decide: F,
    decided: Option<Result<T, Error>>,
    reply: oneshot::Sender<Result<T, Error>>,
}

impl<T, F> Waiting<T, F> {
    /// Not decided yet.
    pub fn new(urgent: bool, decide: F, reply: oneshot::Sender<Result<T, Error>>) -> Self {
        Self {
            urgent,
            decide,
            decided: None,
            reply,
        }
    }
}

impl<T, F> Job for Waiting<T, F>
where
    T: Send + 'static,
    F: Fn(&View<'_>) -> Result<(T, Changes), Error> + Send,
{
    fn is_urgent(&self) -> bool {
        self.urgent
    }

    fn decide(&mut self, view: &View<'_>) -> Option<Changes> {
        let (decided, changes) = match (self.decide)(view) {
            Ok((value, changes)) => (Ok(value), Some(changes)),
            Err(error) => (Err(error), None),
        };
        self.decided = Some(decided);
        changes
    }

    fn fail(&mut self, error: Error) {
        self.decided = Some(Err(error));
    }

    fn answer(self: Box<Self>) {
        let Self { decided, reply, .. } = *self;
        let undecided = || Err(internal("a use case did not run"));
        // A caller that went away has no use for the answer; what it asked for holds.
        drop(reply.send(decided.unwrap_or_else(undecided)));
    }
}

/// What commits, one batch after the other.
pub struct Committer {
    file: Arc<redb::Database>,
    journal: Journal,
    /// There is a record in the journal, or part of one, that the database has not taken over.
    in_doubt: bool,
    empty: Inventory,
    inventory: Inventory,
    versions: Arc<Versions>,
    /// Turns true when the file takes no more writes.
    lost: watch::Sender<bool>,
}

impl Committer {
    /// Fails if the claims cannot be read.
    pub fn new(
        file: Arc<redb::Database>,
        journal: Journal,
        empty: Inventory,
        versions: Arc<Versions>,
        lost: watch::Sender<bool>,
    ) -> Result<Self, Error> {
        let inventory = derive(&file, &empty)?;
        Ok(Self {
            file,
            journal,
            in_doubt: false,
            empty,
            inventory,
            versions,
            lost,
        })
    }

    /// Writes a batch. Its members can be told then, which does not take the committer.
    pub fn run(&mut self, batch: &mut [Box<dyn Job>]) {
        if self.is_lost() {
            // The inventory may have what was not committed, and the journal what nobody was told of.
            let refuse = |job: &mut Box<dyn Job>| job.fail(internal("it takes no more writes"));
            return batch.iter_mut().for_each(refuse);
        }
        let Err(error) = self.commit(batch) else {
            return;
        };
        if self.is_lost() || batch.len() == 1 {
            tracing::error!(%error, "a write failed");
            for job in batch {
                job.fail(internal(error.to_string()));
            }
            return;
        }
        // One member may have spoilt it for all: each on its own.
        tracing::warn!(%error, members = batch.len(), "a batch failed; singly again");
        for alone in batch.chunks_mut(1) {
            self.run(alone);
        }
    }

    /// All of them in one durable transaction, or none.
    fn commit(&mut self, batch: &mut [Box<dyn Job>]) -> Result<(), Error> {
        let done = catch_unwind(AssertUnwindSafe(|| self.transaction(batch)));
        let done = done.unwrap_or_else(|_| Err(internal("a commit panicked")));
        if let Err(error) = &done {
            // After an error of its file the database refuses all writes: what the disk has kept of
            // the last ones only shows when it is opened again.
            if self.is_lost() || self.in_doubt || self.file.begin_write().is_err() {
                self.give_up(error);
                return done;
            }
            // What was applied in memory was not committed. What drivers said of their nodes is
            // in no row, and still true.
            let mut derived = derive(&self.file, &self.empty)?;
            derived.keep_supports(&self.inventory);
            self.inventory = derived;
        }
        done
    }

    fn is_lost(&self) -> bool {
        *self.lost.borrow()
    }

    fn give_up(&self, error: &Error) {
        tracing::error!(%error, "the database cannot be written any more");
        self.lost.send_replace(true);
    }

    fn transaction(&mut self, batch: &mut [Box<dyn Job>]) -> Result<(), Error> {
        let mut txn = self.file.begin_write().map_err(internal)?;
        let mut tables = Tables::open(&txn).map_err(internal)?;
        for job in batch {
            let view = View {
                rows: &tables,
                inventory: &self.inventory,
            };
            // Caught here, since a transaction that is dropped by a panic makes the next opening check
            // the whole file.
            let decided = catch_unwind(AssertUnwindSafe(|| job.decide(&view)));
            let decided = decided.map_err(|_| internal("a use case panicked"))?;
            if let Some(changes) = decided {
                tables.apply(changes, &mut self.inventory)?;
            }
        }
        let record = tables.complete()?;
        if record.bytes().is_empty() {
            drop(tables);
            return txn.abort().map_err(internal);
        }
        let in_journal = self.journal.has_room(record);
        if !in_journal {
            tables.set_period(self.journal.next())?;
        }
        let (record, touched) = tables.finish();
        if in_journal {
            txn.set_durability(Durability::None).map_err(internal)?;
            self.in_doubt = true;
            self.journal.append(&record).map_err(internal)?;
        }
        let places = touched.iter().map(|topic| self.versions.place(topic));
        let _changing = self.versions.changing(places.collect());
        if in_journal {
            txn.commit().map_err(internal)?;
            self.in_doubt = false;
        } else {
            commit_durably(txn)?;
            self.journal.restart(self.journal.next());
        }
        Ok(())
    }

    /// Whether the journal has what the database's file has not, and may still get.
    pub fn needs_checkpoint(&self) -> bool {
        !self.is_lost() && !self.journal.is_empty()
    }

    /// Brings the file up to date.
    pub fn checkpoint(&mut self) {
        if self.needs_checkpoint() {
            self.bring_up_to_date(false);
        }
    }

    fn bring_up_to_date(&mut self, closing: bool) {
        let next = self.journal.next();
        let done = catch_unwind(AssertUnwindSafe(|| checkpoint(&self.file, next, closing)));
        match done.unwrap_or_else(|_| Err(internal("a checkpoint panicked"))) {
            Ok(()) => self.journal.restart(next),
            Err(error) => self.give_up(&error),
        }
    }

    /// Leaves a file that needs no journal.
    pub fn close(&mut self) {
        if !self.is_lost() {
            self.bring_up_to_date(true);
        }
        if self.is_lost() {
            return;
        }
        if let Err(error) = self.journal.clear() {
            tracing::warn!(%error, "the journal cannot be cleared");
        }
    }
}

fn checkpoint(file: &redb::Database, next: Period, closing: bool) -> Result<(), Error> {
    let txn = file.begin_write().map_err(internal)?;
    let mut tables = Tables::open(&txn).map_err(internal)?;
    tables.set_period(next)?;
    if closing {
        tables.set_closed(next.session)?;
    }
    drop(tables);
    commit_durably(txn)
}

/// Commits to the file, so that it need not be checked whole after a crash. It takes longer than a plain
/// commit; but where the journal can be written there are few of them.
pub fn commit_durably(mut txn: WriteTransaction) -> Result<(), Error> {
    txn.set_quick_repair(true);
    txn.commit().map_err(internal)
}

/// The inventory that the committed claims add up to.
fn derive(file: &redb::Database, empty: &Inventory) -> Result<Inventory, Error> {
    let mut inventory = empty.clone();
    let rows = Snapshot::open(file).map_err(internal)?;
    inventory.add_all(|add| rows.each_claim(|_, claim| add(&claim)))?;
    Ok(inventory)
}

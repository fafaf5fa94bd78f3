//! The writer: one thread that gathers whoever is waiting into one transaction.

use super::apply::Tables;
use super::batch::Changes;
use super::codec::internal;
use super::read::{Read, Snapshot};
use super::versions::Versions;
use crate::domain::error::Error;
use crate::placement::Inventory;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Most use cases in one commit; bounds how long the first of them waits.
const BATCH: usize = 1024;
/// How long writes that no request made, those of the reconciler, are kept for a commit that a
/// request needs anyway. Each commit of their own would be one that a request's write waits for.
const LINGER: Duration = Duration::from_millis(2);

/// What a use case decides from: the rows as its batch has left them, and the inventory.
pub struct View<'a> {
    /// The rows.
    pub rows: &'a Tables<'a>,
    /// What is free.
    pub inventory: &'a Inventory,
}

/// Hands use cases to the writer's thread.
#[derive(Clone)]
pub struct Writer {
    jobs: Sender<Box<dyn Job>>,
    versions: Arc<Versions>,
}

/// A use case on its way through a batch.
trait Job: Send {
    /// A request made it.
    fn is_urgent(&self) -> bool;
    /// Decides; changes only if it said Ok.
    fn decide(&mut self, view: &View<'_>) -> Option<Changes>;
    /// Tells the caller, after the commit.
    fn answer(self: Box<Self>, commit: Result<(), Error>);
}

struct Waiting<T, F> {
    urgent: bool,
    decide: F,
    decided: Option<Result<T, Error>>,
    reply: oneshot::Sender<Result<T, Error>>,
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

    fn answer(self: Box<Self>, commit: Result<(), Error>) {
        let Self { decided, reply, .. } = *self;
        let undecided = || Err(internal("a use case did not run"));
        let answer = commit.and_then(|()| decided.unwrap_or_else(undecided));
        // A caller that went away has no use for the answer; what it asked for holds.
        drop(reply.send(answer));
    }
}

impl Writer {
    /// Starts the thread. Fails if the claims cannot be read.
    pub fn start(file: Arc<redb::Database>, empty: Inventory) -> Result<Self, Error> {
        let inventory = derive(&file, &empty)?;
        let (jobs, queue) = channel::<Box<dyn Job>>();
        let mut state = State {
            file,
            empty,
            inventory,
            versions: Arc::default(),
        };
        let versions = Arc::clone(&state.versions);
        std::thread::Builder::new()
            .name("db-writer".to_owned())
            .spawn(move || state.run(&queue))
            .map_err(internal)?;
        Ok(Self { jobs, versions })
    }

    /// Which rows have changed since they were read.
    pub fn versions(&self) -> &Versions {
        &self.versions
    }

    fn submit<T: Send + 'static>(
        &self,
        urgent: bool,
        decide: impl Fn(&View<'_>) -> Result<(T, Changes), Error> + Send + 'static,
    ) -> Result<oneshot::Receiver<Result<T, Error>>, Error> {
        let (reply, answer) = oneshot::channel();
        self.jobs
            .send(Box::new(Waiting {
                urgent,
                decide,
                decided: None,
                reply,
            }))
            .map_err(|_| internal("the writer has ended"))?;
        Ok(answer)
    }

    /// See [`super::Db::write`].
    pub async fn write<T: Send + 'static>(
        &self,
        decide: impl Fn(&View<'_>) -> Result<(T, Changes), Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.submit(true, decide)?.await.map_err(internal)?
    }

    /// See [`super::Db::write_later`].
    pub async fn write_later<T: Send + 'static>(
        &self,
        decide: impl Fn(&View<'_>) -> Result<(T, Changes), Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.submit(false, decide)?.await.map_err(internal)?
    }

    /// See [`super::Db::write_blocking`].
    pub fn write_blocking<T: Send + 'static>(
        &self,
        decide: impl Fn(&View<'_>) -> Result<(T, Changes), Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.submit(true, decide)?
            .blocking_recv()
            .map_err(internal)?
    }
}

struct State {
    file: Arc<redb::Database>,
    empty: Inventory,
    inventory: Inventory,
    versions: Arc<Versions>,
}

impl State {
    fn run(&mut self, queue: &Receiver<Box<dyn Job>>) {
        while let Ok(first) = queue.recv() {
            let mut batch = vec![first];
            gather(queue, &mut batch);
            match self.commit(&mut batch) {
                Ok(()) => batch.into_iter().for_each(|job| job.answer(Ok(()))),
                Err(error) if batch.len() == 1 => {
                    tracing::error!(%error, "a write failed");
                    batch.into_iter().for_each(|job| {
                        job.answer(Err(Error::Internal(error.to_string())));
                    });
                }
                // One member may have spoilt it for all: each on its own.
                Err(error) => {
                    tracing::warn!(%error, members = batch.len(), "a batch failed; singly again");
                    for job in batch {
                        let mut alone = vec![job];
                        let outcome = self.commit(&mut alone);
                        for job in alone {
                            let outcome = outcome.as_ref().copied();
                            job.answer(outcome.map_err(|e| Error::Internal(e.to_string())));
                        }
                    }
                }
            }
        }
    }

    /// All of them in one durable transaction, or none.
    fn commit(&mut self, batch: &mut [Box<dyn Job>]) -> Result<(), Error> {
        let done = catch_unwind(AssertUnwindSafe(|| self.transaction(batch)));
        let done = done.unwrap_or_else(|_| Err(internal("a use case panicked")));
        if done.is_err() {
            // What was applied in memory was not committed. What drivers said of their nodes is
            // in no row, and still true.
            let mut derived = derive(&self.file, &self.empty)?;
            derived.keep_supports(&self.inventory);
            self.inventory = derived;
        }
        done
    }

    fn transaction(&mut self, batch: &mut [Box<dyn Job>]) -> Result<(), Error> {
        let txn = self.file.begin_write().map_err(internal)?;
        let mut wrote = false;
        let touched = {
            let mut tables = Tables::open(&txn).map_err(internal)?;
            for job in batch {
                let view = View {
                    rows: &tables,
                    inventory: &self.inventory,
                };
                if let Some(changes) = job.decide(&view) {
                    wrote = wrote || !changes.0.is_empty();
                    tables.apply(changes, &mut self.inventory)?;
                }
            }
            tables.touched()
        };
        if wrote {
            let places = touched.iter().map(|topic| self.versions.place(topic));
            let _changing = self.versions.changing(places.collect());
            txn.commit().map_err(internal)
        } else {
            txn.abort().map_err(internal)
        }
    }
}

/// Adds what is waiting; where no request made any of it, what comes within a short while too.
fn gather(queue: &Receiver<Box<dyn Job>>, batch: &mut Vec<Box<dyn Job>>) {
    let end = Instant::now() + LINGER;
    loop {
        let room = BATCH - batch.len();
        batch.extend(queue.try_iter().take(room));
        if batch.len() == BATCH || batch.iter().any(|job| job.is_urgent()) {
            return;
        }
        match queue.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(job) => batch.push(job),
            Err(_) => return,
        }
    }
}

/// The inventory that the committed claims add up to.
fn derive(file: &redb::Database, empty: &Inventory) -> Result<Inventory, Error> {
    let mut inventory = empty.clone();
    let rows = Snapshot::open(file).map_err(internal)?;
    inventory.add_all(|add| rows.each_claim(|_, claim| add(&claim)))?;
    Ok(inventory)
}

//! Whose thread commits, and what shares a commit. There is one commit at a time, of all that waits.
//!
//! A write that finds nobody else writing is committed on the thread of its caller: that is the same
//! work without two changes of thread, which take a quarter of the time that a commit takes. Where
//! writes come together, the writer's own thread gathers them.

use super::batch::Changes;
use super::codec::internal;
use super::commit::{Committer, Job, View, Waiting};
use crate::domain::error::Error;
use crate::placement::Inventory;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{oneshot, watch};

/// Most use cases in one commit; bounds how long the first of them waits.
const BATCH: usize = 1024;
/// How long writes that no request made, those of the reconciler, are kept for a commit that a
/// request needs anyway. Each commit of their own would be one that a request's write waits for. If
/// none has come for as long, there is nothing to keep one for.
pub(super) const LINGER: Duration = Duration::from_millis(2);
/// How long after a commit of several requests the next such is expected.
const CROWD: Duration = Duration::from_millis(5);

/// Takes use cases. Its last clone takes the thread with it, so that the file can be closed.
#[derive(Clone)]
pub struct Writer(Arc<Owner>);

struct Owner {
    shared: Arc<Shared>,
    /// There until it is dropped.
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    committer: Mutex<Committer>,
    queue: Mutex<Queue>,
    /// Rung for the thread: there is something in the queue, or it is closed.
    bell: Condvar,
    started: Instant,
    /// Until when writes of several requests are taken to come together, in ns from `started`: a
    /// moment longer than the last commit that they shared.
    crowded_until: AtomicU64,
    /// When the latest write came, in ns from `started`.
    latest: AtomicU64,
    commits: Arc<AtomicU64>,
    lost: watch::Receiver<bool>,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Box<dyn Job>>,
    closed: bool,
}

impl Writer {
    /// Starts the thread. Fails if the claims cannot be read.
    pub fn start(file: Arc<redb::Database>, empty: Inventory) -> Result<Self, Error> {
        let commits = Arc::<AtomicU64>::default();
        let (losing, lost) = watch::channel(false);
        let committer = Committer::new(file, empty, Arc::clone(&commits), losing)?;
        let shared = Arc::new(Shared {
            committer: Mutex::new(committer),
            queue: Mutex::default(),
            bell: Condvar::new(),
            started: Instant::now(),
            crowded_until: AtomicU64::new(0),
            latest: AtomicU64::new(0),
            commits,
            lost,
        });
        let thread = std::thread::Builder::new()
            .name("db-writer".to_owned())
            .spawn({
                let shared = Arc::clone(&shared);
                move || shared.serve()
            })
            .map_err(internal)?;
        let thread = Some(thread);
        Ok(Self(Arc::new(Owner { shared, thread })))
    }

    fn shared(&self) -> &Shared {
        &self.0.shared
    }

    /// See [`super::Db::commits`].
    pub fn commits(&self) -> u64 {
        self.shared().commits.load(Ordering::SeqCst)
    }

    /// Whether the file takes no more writes.
    pub fn is_lost(&self) -> bool {
        *self.shared().lost.borrow()
    }

    /// Whether writes of several requests come together.
    pub fn is_crowded(&self) -> bool {
        self.shared().is_crowded()
    }

    /// Until that is so.
    pub async fn lost(&self) {
        let mut lost = self.shared().lost.clone();
        // Who would tell is there for as long as this is.
        let _ = lost.wait_for(|lost| *lost).await;
    }

    /// See [`super::Db::write`].
    pub async fn write<T: Send + 'static>(
        &self,
        decide: impl Fn(&View<'_>) -> Result<(T, Changes), Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        let job = Box::new(Waiting::new(true, decide, reply));
        self.shared().submit(job, may_block());
        answer.await.map_err(internal)?
    }

    /// See [`super::Db::write_later`].
    pub async fn write_later<T: Send + 'static>(
        &self,
        decide: impl Fn(&View<'_>) -> Result<(T, Changes), Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (reply, mut answer) = oneshot::channel();
        let job = Box::new(Waiting::new(false, decide, reply));
        let alone = self.shared().comes_alone();
        self.shared().queue().jobs.push_back(job);
        if !alone && let Ok(answer) = tokio::time::timeout(LINGER, &mut answer).await {
            return answer.map_err(internal)?;
        }
        self.shared().bell.notify_one();
        answer.await.map_err(internal)?
    }

    /// See [`super::Db::write_blocking`].
    pub fn write_blocking<T: Send + 'static>(
        &self,
        decide: impl Fn(&View<'_>) -> Result<(T, Changes), Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        let job = Box::new(Waiting::new(true, decide, reply));
        self.shared().submit(job, false);
        answer.blocking_recv().map_err(internal)?
    }
}

/// Whether a task may keep its thread for as long as a commit takes: another takes its place.
fn may_block() -> bool {
    Handle::try_current()
        .is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.shared.queue().closed = true;
        self.shared.bell.notify_one();
        if let Some(thread) = self.thread.take() {
            // What it was still to write is written; a thread that panicked has nothing more to do.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whoever holds it commits.
    fn committer(&self) -> MutexGuard<'_, Committer> {
        self.committer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// A write comes. Whether none has for a while.
    fn comes_alone(&self) -> bool {
        let now = nanos(self.started.elapsed());
        let before = self.latest.swap(now, Ordering::Relaxed);
        now.saturating_sub(before) > nanos(LINGER)
    }

    fn is_crowded(&self) -> bool {
        self.crowded_until.load(Ordering::Relaxed) > nanos(self.started.elapsed())
    }

    fn idle_committer(&self) -> Option<MutexGuard<'_, Committer>> {
        match self.committer.try_lock() {
            Ok(committer) => Some(committer),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Sees to it that the job is done: here, or by the thread.
    fn submit(&self, job: Box<dyn Job>, here: bool) {
        self.comes_alone();
        let here = here && !self.is_crowded();
        if let Some(committer) = here.then(|| self.idle_committer()).flatten() {
            // The thread never sees this job, so it cannot be between the next one and the committer.
            let batch = self.batch(Some(job));
            tokio::task::block_in_place(|| self.run(committer, batch));
        } else {
            self.queue().jobs.push_back(job);
            self.bell.notify_one();
        }
    }

    /// One more and all that waits, up to a whole batch. Who put in what remains rings for it.
    fn batch(&self, one: Option<Box<dyn Job>>) -> Vec<Box<dyn Job>> {
        let jobs = &mut self.queue().jobs;
        let count = jobs.len().min(BATCH - usize::from(one.is_some()));
        one.into_iter().chain(jobs.drain(..count)).collect()
    }

    /// Commits a batch and tells everyone in it, who then finds the committer free.
    fn run(&self, mut committer: MutexGuard<'_, Committer>, mut batch: Vec<Box<dyn Job>>) {
        if batch.is_empty() {
            return;
        }
        let requests = batch.iter().filter(|job| job.is_urgent()).count();
        if requests > 1 {
            self.crowded_until.store(u64::MAX, Ordering::Relaxed);
        }
        committer.run(&mut batch);
        if requests > 1 {
            let until = self.started.elapsed() + CROWD;
            self.crowded_until.store(nanos(until), Ordering::Relaxed);
        }
        drop(committer);
        batch.into_iter().for_each(|job| job.answer());
    }

    /// The thread: until the queue is closed and empty.
    fn serve(&self) {
        while self.wait() {
            let committer = self.committer();
            let batch = self.batch(None);
            self.run(committer, batch);
        }
    }

    /// Waits for something to do; false if there will be nothing.
    fn wait(&self) -> bool {
        let mut queue = self.queue();
        while queue.jobs.is_empty() && !queue.closed {
            queue = self
                .bell
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
        }
        !queue.jobs.is_empty()
    }
}

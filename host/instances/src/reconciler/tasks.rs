//! The tasks of the reconciler, at most one for each instance: its worker.

use super::worker::Worker;
use crate::App;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, Semaphore};
use tokio::task::AbortHandle;
use tokio::time::Instant;
use wharf_db::{Db, Read};
use wharf_domain::error::Error;
use wharf_domain::ids::{InstanceId, NodeId};
use wharf_domain::time::Timestamp;

/// The fraction of a node's queue of calls that is kept free of new instances: 1 in `KEPT_FREE`. A stop
/// or a deletion finds a place there.
const KEPT_FREE: usize = 8;

/// The tasks, by instance.
pub struct Tasks {
    running: Mutex<HashMap<InstanceId, Task>>,
    /// Instances of which this process has requested something from a driver.
    requested: Mutex<HashMap<InstanceId, Unanswered>>,
    /// The start of this process.
    started: Timestamp,
    begun: Instant,
    /// Bound the new instances that begin at once, by node.
    beginning: BTreeMap<NodeId, Semaphore>,
}

/// The last requests that got no answer. The engine may carry each out after a later one that was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unanswered {
    /// One to make the instance.
    pub creation: Option<Instant>,
    /// One that sets its size, by a resize or a start.
    pub size: Option<Instant>,
}

/// An engine may still carry out a request whose response was lost. Only an absence this much later proves that it
/// did not make an instance.
pub const SECOND_LOOK: Duration = Duration::from_secs(5);

/// The time until a request counts as answered, or as never carried out.
pub fn until_certain(unanswered: Option<Instant>) -> Option<Duration> {
    let left = SECOND_LOOK.saturating_sub(unanswered?.elapsed());
    (!left.is_zero()).then_some(left)
}

struct Task {
    notify: Arc<Notify>,
    /// Woken since the task last read the row.
    woken: bool,
    /// The latest request for the instance.
    request_id: Option<Arc<str>>,
    handle: AbortHandle,
}

impl Task {
    /// Whether the task has not ended. A task that panicked has ended without calling [`Tasks::finish`].
    fn is_alive(&self) -> bool {
        !self.handle.is_finished()
    }

    fn wake(&mut self, request_id: Option<Arc<str>>) {
        self.woken = true;
        if request_id.is_some() {
            self.request_id = request_id;
        }
        self.notify.notify_one();
    }
}

impl Tasks {
    pub fn new(app: &App) -> Self {
        let places = app.config().limits.calls_per_node;
        let new = places.saturating_sub(places.div_ceil(KEPT_FREE)).max(1);
        let nodes = app.drivers.keys().cloned();
        // Wharf's own clock may go back at a start.
        let mut started = app.clock.now();
        let read = app
            .db
            .read(|rows| rows.each_instance(|row| started = started.max(row.last_event_at)));
        if read.is_err() {
            started = Timestamp(i64::MAX);
        }
        Self {
            running: Mutex::default(),
            requested: Mutex::default(),
            started,
            begun: Instant::now(),
            beginning: nodes.map(|node| (node, Semaphore::new(new))).collect(),
        }
    }

    /// Makes the worker of an instance read the row, on behalf of a request if there is one. Starts a worker
    /// if there is none.
    pub fn wake(self: &Arc<Self>, app: &Arc<App>, id: InstanceId, request_id: Option<Arc<str>>) {
        if !self.wake_running(id, request_id.as_ref()) {
            self.start(app, id, request_id);
        }
    }

    /// Starts the worker of an instance, unless it has one.
    pub fn start(self: &Arc<Self>, app: &Arc<App>, id: InstanceId, request_id: Option<Arc<str>>) {
        self.start_with(id, request_id, |notify| {
            let worker = Worker::new(Arc::clone(app), Arc::clone(self), id, notify);
            tokio::spawn(worker.run()).abort_handle()
        });
    }

    /// Makes the task of an instance read the row again. False if there is no task.
    fn wake_running(&self, id: InstanceId, request_id: Option<&Arc<str>>) -> bool {
        let mut running = self.running.lock();
        let Some(task) = running.get_mut(&id).filter(|task| task.is_alive()) else {
            return false;
        };
        task.wake(request_id.cloned());
        true
    }

    /// Starts a task, unless the instance has one.
    fn start_with(
        &self,
        id: InstanceId,
        request_id: Option<Arc<str>>,
        spawn: impl FnOnce(Arc<Notify>) -> AbortHandle,
    ) {
        let mut running = self.running.lock();
        if let Some(task) = running.get_mut(&id).filter(|task| task.is_alive()) {
            // Another thread started it since the caller looked.
            if request_id.is_some() {
                task.wake(request_id);
            }
            return;
        }
        let notify = Arc::new(Notify::new());
        let task = Task {
            handle: spawn(Arc::clone(&notify)),
            notify,
            woken: false,
            request_id,
        };
        running.insert(id, task);
    }

    /// Whether an instance has a task.
    pub fn is_running(&self, id: InstanceId) -> bool {
        self.running.lock().get(&id).is_some_and(Task::is_alive)
    }

    /// To be called by the task before it reads the row. The result is the latest request's id.
    pub fn reading(&self, id: InstanceId) -> Option<Arc<str>> {
        let mut running = self.running.lock();
        let task = running.get_mut(&id)?;
        task.woken = false;
        task.request_id.clone()
    }

    /// Ends the task of a settled instance. False if it was woken meanwhile and must read again.
    pub fn finish(&self, id: InstanceId) -> bool {
        let mut running = self.running.lock();
        if running.get(&id).is_some_and(|task| task.woken) {
            return false;
        }
        running.remove(&id);
        true
    }

    /// Aborts all tasks.
    pub fn shutdown(&self) {
        for task in self.running.lock().values() {
            task.handle.abort();
        }
    }

    /// The permits for new instances on a node.
    pub fn beginning(&self, node: &NodeId) -> Option<&Semaphore> {
        self.beginning.get(node)
    }

    /// Notes that a driver is about to be asked to create an instance, which it may have been before this process.
    pub fn requesting(&self, id: InstanceId, before: bool) {
        let earlier = before.then_some(self.begun);
        let unanswered = Unanswered {
            creation: earlier,
            size: earlier,
        };
        self.requested.lock().entry(id).or_insert(unanswered);
    }

    /// The requests about an instance that got no answer. An earlier process may have made one right before its end.
    pub fn unanswered(&self, id: InstanceId) -> Unanswered {
        let earlier = Unanswered {
            creation: Some(self.begun),
            size: Some(self.begun),
        };
        self.requested.lock().get(&id).copied().unwrap_or(earlier)
    }

    /// Notes a request that got no answer.
    pub fn not_answered(
        &self,
        id: InstanceId,
        note: impl FnOnce(&mut Unanswered, Option<Instant>),
    ) {
        let mut unanswered = self.unanswered(id);
        note(&mut unanswered, Some(Instant::now()));
        self.requested.lock().insert(id, unanswered);
    }

    /// Forgets a deleted instance.
    pub fn forget(&self, id: InstanceId) {
        self.requested.lock().remove(&id);
    }

    /// Whether no driver was ever asked to create the instance, by this process or an earlier one. The
    /// ledger tells the time of the creation by Wharf's own clock, which does not follow wrong clocks.
    pub fn was_never_requested(&self, db: &Db, id: InstanceId) -> Result<bool, Error> {
        if self.requested.lock().contains_key(&id) {
            return Ok(false);
        }
        let first = db
            .read(|rows| rows.ledger(id))?
            .first()
            .map(|entry| entry.at);
        Ok(first.is_some_and(|at| at > self.started))
    }
}

#[cfg(test)]
mod tests {
    use super::Tasks;
    use parking_lot::Mutex;
    use std::collections::BTreeMap;
    use tokio::time::Instant;
    use wharf_domain::ids::InstanceId;
    use wharf_domain::time::Timestamp;

    #[tokio::test]
    async fn a_task_that_ended_without_finishing_is_replaced() {
        let tasks = Tasks {
            running: Mutex::default(),
            requested: Mutex::default(),
            started: Timestamp(0),
            begun: Instant::now(),
            beginning: BTreeMap::new(),
        };
        let id = InstanceId(uuid::Uuid::nil());
        let ended = tokio::spawn(async {});
        let handle = ended.abort_handle();
        ended.await.unwrap();
        tasks.start_with(id, None, |_| handle);
        assert!(!tasks.is_running(id) && !tasks.wake_running(id, None));
        let alive = tokio::spawn(std::future::pending::<()>()).abort_handle();
        tasks.start_with(id, None, |_| alive);
        assert!(tasks.is_running(id) && tasks.wake_running(id, None));
    }
}

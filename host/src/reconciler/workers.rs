//! One task for each instance with work, never two for the same.

use super::work::Worker;
use crate::app::{App, now};
use crate::domain::ids::InstanceId;
use crate::domain::time::Timestamp;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

/// The tasks, by instance.
pub struct Workers {
    app: Arc<App>,
    running: Mutex<HashMap<InstanceId, Running>>,
    /// Instances whose driver was asked to make them by this process.
    asked: Mutex<HashSet<InstanceId>>,
    /// When this process began.
    pub(super) started: Timestamp,
}

struct Running {
    bell: Arc<Notify>,
    /// Woken since the task last read the row.
    woken: bool,
    task: Option<AbortHandle>,
}

impl Workers {
    pub fn new(app: Arc<App>) -> Self {
        Self {
            app,
            running: Mutex::default(),
            asked: Mutex::default(),
            started: now(),
        }
    }

    fn running(&self) -> MutexGuard<'_, HashMap<InstanceId, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn asked(&self) -> MutexGuard<'_, HashSet<InstanceId>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// There is something new about an instance: its task looks at once.
    pub fn wake(self: &Arc<Self>, id: InstanceId) {
        {
            let mut running = self.running();
            if let Some(task) = running.get_mut(&id) {
                task.woken = true;
                task.bell.notify_one();
                return;
            }
        }
        self.ensure(id);
    }

    /// There is work on an instance: it has a task from now on.
    pub fn ensure(self: &Arc<Self>, id: InstanceId) {
        let mut running = self.running();
        if running.contains_key(&id) {
            return;
        }
        let bell = Arc::new(Notify::new());
        let worker = Worker::new(
            Arc::clone(&self.app),
            Arc::clone(self),
            id,
            Arc::clone(&bell),
        );
        let task = tokio::spawn(worker.run()).abort_handle();
        running.insert(
            id,
            Running {
                bell,
                woken: false,
                task: Some(task),
            },
        );
    }

    /// Whether an instance has a task, that is, is being worked on.
    pub fn busy(&self, id: InstanceId) -> bool {
        self.running().contains_key(&id)
    }

    /// The task has read the row.
    pub(super) fn seen(&self, id: InstanceId) {
        if let Some(task) = self.running().get_mut(&id) {
            task.woken = false;
        }
    }

    /// The task found nothing to do. False if it was woken meanwhile and must look again.
    pub(super) fn finish(&self, id: InstanceId) -> bool {
        let mut running = self.running();
        if running.get(&id).is_some_and(|task| task.woken) {
            return false;
        }
        running.remove(&id);
        true
    }

    /// Cuts all tasks off.
    pub fn shutdown(&self) {
        for task in self.running().values() {
            if let Some(task) = &task.task {
                task.abort();
            }
        }
    }
}

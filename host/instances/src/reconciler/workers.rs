//! Starts a worker for each instance with work.

use super::tasks::Tasks;
use super::worker::Worker;
use crate::App;
use std::sync::Arc;
use wharf_domain::ids::InstanceId;

/// The workers of all instances.
pub struct Workers {
    app: Arc<App>,
    tasks: Arc<Tasks>,
}

impl Workers {
    pub fn new(app: Arc<App>) -> Self {
        Self {
            tasks: Arc::new(Tasks::new(&app)),
            app,
        }
    }

    /// Makes an instance's worker read the row, on behalf of a request if there is one.
    pub fn wake(&self, id: InstanceId, request_id: Option<Arc<str>>) {
        if !self.tasks.wake(id, request_id.as_ref()) {
            self.start(id, request_id);
        }
    }

    /// Starts a worker, unless the instance has one.
    pub fn start(&self, id: InstanceId, request_id: Option<Arc<str>>) {
        self.tasks.start(id, request_id, |notify| {
            let (app, tasks) = (Arc::clone(&self.app), Arc::clone(&self.tasks));
            tokio::spawn(Worker::new(app, tasks, id, notify).run()).abort_handle()
        });
    }

    /// Whether an instance has a worker.
    pub fn is_running(&self, id: InstanceId) -> bool {
        self.tasks.is_running(id)
    }

    /// Aborts all workers.
    pub fn shutdown(&self) {
        self.tasks.shutdown();
    }
}

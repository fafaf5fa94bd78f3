//! Tasks that the server cannot do without. It ends with the first of them that ends.

use std::collections::HashMap;
use std::future::Future;
use tokio::runtime::Handle;
use tokio::task::{Id, JoinError, JoinSet};

/// The tasks, with their names. Those that run when this is dropped are aborted.
#[derive(Default)]
pub struct SupervisedTasks {
    running: JoinSet<()>,
    names: HashMap<Id, &'static str>,
}

impl SupervisedTasks {
    /// Starts a task.
    pub fn spawn(&mut self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.spawn_on(&Handle::current(), name, task);
    }

    /// Starts a task on a runtime.
    pub fn spawn_on(
        &mut self,
        runtime: &Handle,
        name: &'static str,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        let id = self.running.spawn_on(task, runtime).id();
        self.names.insert(id, name);
    }

    /// Waits until one of the tasks ends, and returns its name. Waits for ever if there is none.
    pub async fn ended(&mut self) -> &'static str {
        match self.running.join_next_with_id().await {
            Some(ended) => self.report(ended),
            None => std::future::pending().await,
        }
    }

    /// Waits until all tasks have ended.
    pub async fn finished(mut self) {
        while let Some(ended) = self.running.join_next_with_id().await {
            self.report(ended);
        }
    }

    /// Logs the failure of a task that has ended, and returns its name.
    fn report(&self, ended: Result<(Id, ()), JoinError>) -> &'static str {
        let id = ended.as_ref().map_or_else(JoinError::id, |(id, ())| *id);
        let name = self.names.get(&id).copied().unwrap_or("a task");
        if let Err(error) = ended {
            tracing::error!("{name} failed: {error}");
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::SupervisedTasks;

    #[tokio::test]
    async fn the_first_task_that_ends_is_named_even_if_it_panics() {
        let mut tasks = SupervisedTasks::default();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        tasks.spawn("good", async move { drop(stopped.await) });
        tasks.spawn("bad", async { panic!("on purpose") });
        assert_eq!(tasks.ended().await, "bad");
        drop(stop);
        tasks.finished().await;
    }
}

//! One task for each webhook. A panic ends one task, which is started again.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::time::Duration;
use tokio::task::{Id, JoinSet};
use tokio::time::sleep;
use wharf_domain::webhook::WebhookId;

/// The running tasks.
pub(super) struct Tasks {
    /// The pause before a task starts again. Its rows may make it panic each time.
    pause: Duration,
    set: JoinSet<()>,
    running: HashMap<Id, WebhookId>,
    ids: HashSet<WebhookId>,
    /// Webhooks whose last task ended with a panic.
    failed: HashSet<WebhookId>,
}

impl Tasks {
    pub(super) fn new(pause: Duration) -> Self {
        Self {
            pause,
            set: JoinSet::new(),
            running: HashMap::new(),
            ids: HashSet::new(),
            failed: HashSet::new(),
        }
    }

    /// Starts the task of a webhook, unless it runs.
    pub(super) fn start<F>(&mut self, id: WebhookId, serve: impl FnOnce() -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        if !self.ids.insert(id) {
            return;
        }
        let pause = self.failed.remove(&id).then_some(self.pause);
        let serve = serve();
        let task = self.set.spawn(async move {
            if let Some(pause) = pause {
                sleep(pause).await;
            }
            serve.await;
        });
        self.running.insert(task.id(), id);
    }

    /// Completes when a task has ended; never while there is none. Returns whether it panicked.
    pub(super) async fn ended(&mut self) -> bool {
        let (task, failure) = match self.set.join_next_with_id().await {
            Some(Ok((task, ()))) => (task, None),
            Some(Err(error)) => (error.id(), Some(error)),
            None => return std::future::pending().await,
        };
        let Some(id) = self.running.remove(&task) else {
            return false;
        };
        self.ids.remove(&id);
        let has_failed = failure.is_some();
        if let Some(error) = failure {
            self.failed.insert(id);
            tracing::error!(webhook = %id, %error, "the task of a webhook ended, starting it again");
        }
        has_failed
    }
}

#[cfg(test)]
mod tests {
    use super::Tasks;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;
    use tokio::time::{Instant, sleep, timeout};
    use uuid::Uuid;
    use wharf_domain::webhook::WebhookId;

    const PAUSE: Duration = Duration::from_millis(50);

    #[tokio::test]
    async fn a_panic_ends_one_webhooks_task_which_starts_again() {
        let [bad, good] = [1, 2].map(|n| WebhookId(Uuid::from_u128(n)));
        let (mut tasks, begin) = (Tasks::new(PAUSE), Instant::now());
        let starts = Arc::new(Mutex::new(Vec::new()));
        for _ in 0..3 {
            for id in [bad, good] {
                let starts = Arc::clone(&starts);
                tasks.start(id, || async move {
                    starts.lock().unwrap().push((id, begin.elapsed()));
                    if id == bad {
                        panic!("on purpose")
                    } else {
                        sleep(Duration::from_secs(3600)).await
                    }
                });
            }
            let limit = Duration::from_secs(30);
            timeout(limit, tasks.ended()).await.unwrap();
        }
        let starts = starts.lock().unwrap().clone();
        let of = |id| starts.iter().filter(move |(started, _)| *started == id);
        let times: Vec<_> = of(bad).map(|(_, at)| *at).collect();
        assert_eq!(times.len(), 3);
        assert!(times[1] >= PAUSE && times[2] >= 2 * PAUSE, "{times:?}");
        assert_eq!(of(good).count(), 1, "it was not ended");
    }
}

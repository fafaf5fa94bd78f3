//! The worker of one instance: it attempts the planned step until the node follows the row.

use super::apply::Apply;
use super::attempt::{Attempt, FIRST_PAUSE, History, Next, give_up};
use super::plan::{Step, plan};
use super::spec;
use super::tasks::Tasks;
use crate::App;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, Semaphore, SemaphorePermit};
use tracing::{Instrument, error_span};
use wharf_db::Read;
use wharf_domain::ids::InstanceId;
use wharf_domain::instance::Instance;

/// The longest pause between attempts.
const LAST_PAUSE: Duration = Duration::from_secs(5);

pub struct Worker {
    app: Arc<App>,
    tasks: Arc<Tasks>,
    id: InstanceId,
    notify: Arc<Notify>,
    /// The pause before the next retry.
    backoff: Duration,
    history: History,
}

impl Worker {
    pub fn new(app: Arc<App>, tasks: Arc<Tasks>, id: InstanceId, notify: Arc<Notify>) -> Self {
        Self {
            app,
            tasks,
            id,
            notify,
            backoff: FIRST_PAUSE,
            history: History::default(),
        }
    }

    pub async fn run(mut self) {
        loop {
            let request_id = self.tasks.reading(self.id);
            let mut deadline = None;
            let next = match self.app.db.read(|rows| rows.instance(self.id)) {
                Ok(Some(instance)) => match plan(&instance) {
                    Step::Nothing => None,
                    step => {
                        deadline = self.history.deadline(&instance, self.full_deadline());
                        // Lines of every level name the instance.
                        let attempt = error_span!(
                            "attempt",
                            instance = %self.id,
                            generation = instance.generation.0,
                            request_id = request_id.as_deref(),
                        );
                        let next = self.attempt(step, &instance, deadline);
                        Some(next.instrument(attempt).await)
                    }
                },
                Ok(None) => None,
                Err(error) => Some(error.into()),
            };
            self.app.settled.notify(self.id);
            match next {
                None if self.tasks.finish(self.id) => return,
                None | Some(Next::Look) => self.backoff = FIRST_PAUSE,
                Some(Next::After(pause)) => {
                    self.backoff = FIRST_PAUSE;
                    self.pause(pause, deadline).await;
                }
                Some(Next::Retry(why)) => {
                    tracing::warn!(
                        instance = %self.id,
                        request_id = request_id.as_deref(),
                        pause_ms = self.backoff.as_millis() as u64,
                        %why,
                        "attempt failed, retrying"
                    );
                    self.pause(self.backoff, deadline).await;
                    self.backoff = (self.backoff * 2).min(LAST_PAUSE);
                }
            }
        }
    }

    /// Waits for the pause, the deadline or a notification, at most for [`LAST_PAUSE`].
    async fn pause(&self, pause: Duration, deadline: Option<Instant>) {
        let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
        let pause = pause.min(LAST_PAUSE).min(left.unwrap_or(LAST_PAUSE));
        drop(tokio::time::timeout(pause, self.notify.notified()).await);
    }

    fn full_deadline(&self) -> Duration {
        Duration::from_secs(self.app.config().provisioning_deadline_s)
    }

    async fn attempt(
        &mut self,
        step: Step,
        instance: &Instance,
        deadline: Option<Instant>,
    ) -> Next {
        let apply = Apply {
            db: self.app.db.clone(),
            id: self.id,
            generation: instance.generation,
        };
        if deadline.is_some_and(|end| Instant::now() >= end)
            && matches!(step, Step::Make | Step::Start)
        {
            return give_up(instance, &apply, "not reachable in time").await;
        }
        let Some(driver) = self.app.drivers.get(&instance.node) else {
            return Next::Retry(format!("node {} is not configured", instance.node));
        };
        let target = match spec::target(&self.app, instance) {
            Ok(target) => target,
            Err(error) => return error.into(),
        };
        let mut permit = None;
        if step == Step::Make && !self.history.begun {
            if let Some(permits) = self.tasks.beginning(&instance.node) {
                permit = begin(permits, &self.notify, deadline).await;
            }
            if permit.is_none() {
                return Next::Look;
            }
            self.history.begun = true;
        }
        tracing::debug!(?step, node = %instance.node, "attempting");
        let mut attempt = Attempt {
            app: &self.app,
            tasks: &self.tasks,
            notify: &self.notify,
            history: &mut self.history,
            instance,
            driver,
            target,
            apply,
            permit,
        };
        // Boxed, so that a worker that waits for its permit is small.
        Box::pin(async {
            match step {
                Step::Nothing => Next::Look,
                Step::Make => attempt.make().await,
                Step::Start => attempt.start().await,
                Step::Resize(size) => attempt.resize(size).await,
                Step::Stop => attempt.stop().await,
                Step::Delete => attempt.delete().await,
            }
        })
        .await
    }
}

/// Waits for a permit to begin a new instance on a node. A notification or the deadline ends the wait:
/// a stop or a deletion does not queue.
async fn begin<'a>(
    permits: &'a Semaphore,
    notify: &Notify,
    deadline: Option<Instant>,
) -> Option<SemaphorePermit<'a>> {
    if let Ok(permit) = permits.try_acquire() {
        return Some(permit);
    }
    let over = async {
        match deadline {
            Some(end) => tokio::time::sleep_until(end.into()).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        permit = permits.acquire() => permit.ok(),
        () = notify.notified() => None,
        () = over => None,
    }
}

#[cfg(test)]
mod tests {
    use super::begin;
    use std::time::{Duration, Instant};
    use tokio::sync::{Notify, Semaphore};

    #[tokio::test]
    async fn a_notification_or_the_deadline_ends_the_wait_for_a_permit() {
        let (permits, notify) = (Semaphore::new(1), Notify::new());
        let held = begin(&permits, &notify, None).await;
        assert!(held.is_some());
        notify.notify_one();
        assert!(begin(&permits, &notify, None).await.is_none());
        let soon = Instant::now() + Duration::from_millis(5);
        assert!(begin(&permits, &notify, Some(soon)).await.is_none());
        let later = Instant::now() + Duration::from_secs(600);
        let (next, ()) = tokio::join!(begin(&permits, &notify, Some(later)), async {
            drop(held);
        });
        assert!(next.is_some());
    }
}

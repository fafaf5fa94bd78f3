//! The worker of one instance: it attempts the planned step until the node follows the row.

use super::attempt::{Attempt, FIRST_PAUSE, History, LATE, NextAttempt};
use super::plan::{Step, plan};
use super::relocate::abandon_move;
use super::spec;
use super::tasks::Tasks;
use super::writer::ObservationWriter;
use crate::copies::copies;
use crate::snapshots::RESTORES;
use crate::{App, moves};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, SemaphorePermit};
use tokio::time::Instant;
use tracing::{Instrument, error_span};
use wharf_db::{MOVES, Read as _, Rows as _};
use wharf_domain::event::EventKind;
use wharf_domain::ids::{InstanceId, NodeId};
use wharf_domain::instance::{Instance, Intent};
use wharf_plugin::NodeDriver;

/// The longest pause between attempts.
const LAST_PAUSE: Duration = Duration::from_secs(5);
/// A move ends if its new node is out of reach for this long. The instance is stopped meanwhile.
pub const MAX_AWAY: Duration = Duration::from_secs(20);

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
            let begun = Instant::now();
            let request_id = self.tasks.reading(self.id);
            let (mut deadline, mut node, mut copy) = (None, None, None);
            let rows = self.app.db.read(|rows| {
                let Some(instance) = rows.instance(self.id)? else {
                    return Ok(None);
                };
                copy = copies(rows, self.id)?.making;
                let restores = rows.get(&RESTORES, self.id)?.is_some();
                Ok(Some((instance, rows.get(&MOVES, self.id)?, restores)))
            });
            let next = match rows {
                Ok(Some((instance, moving, restores))) => match plan(&instance, moving.as_ref()) {
                    Step::Nothing => None,
                    step => {
                        if step != Step::Make {
                            self.history.content = None;
                        }
                        if step != Step::Start && !(step == Step::Stop && restores) {
                            self.app.growing.end(self.id);
                            self.history.growth_event = None;
                        }
                        // A move is carried out by the node to which the instance goes.
                        let instance = match moving.filter(|_| step == Step::Move) {
                            Some(moving) => Instance {
                                incarnation: copy.unwrap_or(instance.incarnation),
                                ..moves::relocated(instance, &moving.claim, &moving.ssh_host)
                            },
                            None => instance,
                        };
                        node = Some(instance.node.clone());
                        deadline = self.history.deadline(
                            &instance,
                            self.full_deadline(),
                            self.app.clock.now(),
                        );
                        // Lines of every level name the instance.
                        let attempt = error_span!(
                            "attempt",
                            instance = %self.id,
                            generation = instance.generation.0,
                            request_id = request_id.as_deref(),
                        );
                        let next = self.attempt(step, &instance, deadline);
                        let next = next.instrument(attempt).await;
                        let failed = matches!(next, NextAttempt::Retry(_) | NextAttempt::Away(_));
                        self.app.metrics.attempted(step.name(), failed);
                        Some(next)
                    }
                },
                Ok(None) => None,
                Err(error) => Some(error.into()),
            };
            self.app.waiters.notify(self.id);
            let mut stood_still = false;
            match next {
                None if self.tasks.finish(self.id) => {
                    self.app.growing.end(self.id);
                    return;
                }
                None | Some(NextAttempt::Look) => self.backoff = FIRST_PAUSE,
                Some(NextAttempt::After(pause)) => {
                    self.backoff = FIRST_PAUSE;
                    self.pause(pause, deadline).await;
                }
                Some(next @ (NextAttempt::Retry(_) | NextAttempt::Away(_))) => {
                    stood_still = matches!(next, NextAttempt::Away(_));
                    let (NextAttempt::Retry(why) | NextAttempt::Away(why)) = next else {
                        continue;
                    };
                    tracing::warn!(
                        instance = %self.id,
                        request_id = request_id.as_deref(),
                        pause_ms = self.backoff.as_millis() as u64,
                        %why,
                        "attempt failed, retrying"
                    );
                    let until = deadline.filter(|_| !stood_still);
                    self.pause(self.backoff, until).await;
                    self.backoff = (self.backoff * 2).min(LAST_PAUSE);
                }
            }
            if stood_still || self.is_away(node.as_ref()) {
                self.history.stand_still(begun, Instant::now());
            }
        }
    }

    /// Waits for the pause, the deadline or a notification, at most for [`LAST_PAUSE`].
    async fn pause(&self, pause: Duration, deadline: Option<Instant>) {
        let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
        let pause = shortened(pause, left);
        drop(tokio::time::timeout(pause, self.notify.notified()).await);
    }

    fn is_away(&self, node: Option<&NodeId>) -> bool {
        node.is_some_and(|node| self.app.nodes.is_away(node))
    }

    /// Waits until the node is known to show its own store. Returns the driver's count of interruptions then; none
    /// after a notification or [`LAST_PAUSE`].
    async fn verified(&self, driver: &NodeDriver) -> Option<u64> {
        let verified = self.app.nodes.verified(driver);
        tokio::select! {
            biased;
            interruptions = verified => Some(interruptions),
            () = self.notify.notified() => None,
            () = tokio::time::sleep(LAST_PAUSE) => None,
        }
    }

    fn full_deadline(&self) -> Duration {
        Duration::from_secs(self.app.config().provisioning_deadline_s)
    }

    fn writer(&self, instance: &Instance) -> ObservationWriter {
        ObservationWriter {
            db: self.app.db.clone(),
            id: self.id,
            generation: instance.generation,
        }
    }

    async fn attempt(
        &mut self,
        step: Step,
        instance: &Instance,
        deadline: Option<Instant>,
    ) -> NextAttempt {
        let Some(driver) = self.app.drivers.get(&instance.node).cloned() else {
            return self.without_node(step, instance).await;
        };
        let begun = Instant::now();
        if let Some(next) = self.without_attempt(step, instance).await {
            return next;
        }
        let verified = self.verified(&driver).await;
        self.history.stand_still(begun, Instant::now());
        let Some(interruptions) = verified else {
            // Others need its place.
            self.history.content = None;
            return NextAttempt::Look;
        };
        let target = match spec::target(&self.app, instance) {
            Ok(target) => target,
            Err(error) => return error.into(),
        };
        let expired =
            deadline.is_some_and(|end| begun >= end) && matches!(step, Step::Make | Step::Start);
        let tasks = Arc::clone(&self.tasks);
        let mut permit = None;
        if step == Step::Make && !self.history.begun && !expired {
            permit = self.permit(&tasks, &instance.node).await;
            if permit.is_none() {
                return NextAttempt::Look;
            }
        }
        tracing::debug!(?step, node = %instance.node, "attempting");
        let writer = self.writer(instance);
        let attempt = Attempt {
            app: &self.app,
            tasks: &tasks,
            notify: &self.notify,
            history: &mut self.history,
            instance,
            driver: &driver,
            interruptions,
            target,
            writer,
            permit,
        };
        // Boxed, so that a worker that waits for its permit is small.
        Box::pin(carry_out(attempt, step, expired)).await
    }

    /// The end of a step whose node is not configured.
    async fn without_node(&self, step: Step, instance: &Instance) -> NextAttempt {
        let why = format!("node {} is not configured", instance.node);
        match step {
            Step::Move => abandon_move(&self.app, &self.writer(instance), instance, why).await,
            _ => NextAttempt::Retry(why),
        }
    }

    /// The end of a step without a call to the node: no request waits for the step any more, or the node is
    /// out of reach.
    async fn without_attempt(&mut self, step: Step, instance: &Instance) -> Option<NextAttempt> {
        let is_away = self.is_away(Some(&instance.node));
        let state = || self.app.nodes.state(&instance.node).to_string();
        let writer = self.writer(instance);
        let now = self.app.clock.now();
        if is_away && matches!(step, Step::Resize(_)) {
            // A request waits for a resize, so that a node out of reach refuses it at once.
            let (field, message) = (None, state());
            let why = EventKind::ResizeRefused { field, message };
            return Some(writer.resize_refused(why).await.into());
        }
        if instance.intent == Intent::Start && instance.deadline.is_some_and(|end| now >= end) {
            // The request that asked for the start has gone, or withdraws it now.
            let late = EventKind::RestartFailed(LATE.to_owned());
            return Some(writer.restart_failed(late).await.into());
        }
        if !is_away || step != Step::Move {
            self.history.away_since = None;
            return None;
        }
        let since = *self.history.away_since.get_or_insert_with(Instant::now);
        if since.elapsed() < MAX_AWAY {
            return Some(NextAttempt::After(FIRST_PAUSE));
        }
        self.history.away_since = None;
        Some(abandon_move(&self.app, &writer, instance, state()).await)
    }

    /// Waits for a permit to begin a new instance on a node; none after a notification.
    async fn permit<'t>(&mut self, tasks: &'t Tasks, node: &NodeId) -> Option<SemaphorePermit<'t>> {
        let waited = Instant::now();
        let permit = match tasks.beginning(node) {
            Some(permits) => begin(permits, &self.notify).await,
            None => None,
        };
        self.history.stand_still(waited, Instant::now());
        self.history.begun = permit.is_some();
        permit
    }
}

/// The pause up to a deadline. One that has passed shortens nothing: an attempt that fails without a call would
/// be repeated without an end, and nothing else would run.
fn shortened(pause: Duration, left: Option<Duration>) -> Duration {
    let left = left.filter(|left| !left.is_zero());
    pause.min(LAST_PAUSE).min(left.unwrap_or(LAST_PAUSE))
}

/// Carries a step out, or ends one whose deadline has passed.
async fn carry_out(mut attempt: Attempt<'_>, step: Step, expired: bool) -> NextAttempt {
    if expired {
        return attempt.expire().await;
    }
    match step {
        Step::Nothing => NextAttempt::Look,
        Step::Make => attempt.make().await,
        Step::Start => attempt.start().await,
        Step::Resize(size) => attempt.resize(size).await,
        Step::Stop => attempt.stop().await,
        Step::Move => attempt.relocate().await,
        Step::Delete => attempt.delete().await,
    }
}

/// Waits for a permit to begin a new instance on a node. A notification ends the wait: a stop or a
/// deletion does not queue.
async fn begin<'a>(permits: &'a Semaphore, notify: &Notify) -> Option<SemaphorePermit<'a>> {
    if let Ok(permit) = permits.try_acquire() {
        return Some(permit);
    }
    tokio::select! {
        biased;
        () = notify.notified() => None,
        permit = permits.acquire() => permit.ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::{LAST_PAUSE, begin, shortened};
    use std::time::Duration;
    use tokio::sync::{Notify, Semaphore};

    #[test]
    fn a_deadline_that_has_passed_shortens_no_pause() {
        let (pause, soon) = (Duration::from_secs(1), Duration::from_millis(10));
        assert_eq!(shortened(pause, None), pause);
        assert_eq!(shortened(pause, Some(soon)), soon);
        assert_eq!(shortened(pause, Some(Duration::ZERO)), pause);
        assert_eq!(shortened(2 * LAST_PAUSE, None), LAST_PAUSE);
    }

    #[tokio::test]
    async fn a_notification_ends_the_wait_for_a_permit() {
        let (permits, notify) = (Semaphore::new(1), Notify::new());
        let held = begin(&permits, &notify).await;
        assert!(held.is_some());
        notify.notify_one();
        assert!(begin(&permits, &notify).await.is_none());
        let (next, ()) = tokio::join!(begin(&permits, &notify), async {
            drop(held);
        });
        assert!(next.is_some());
    }
}

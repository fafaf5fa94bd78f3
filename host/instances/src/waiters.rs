//! Waiting requests: each waits until the reconciler has carried out its intent.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use wharf_domain::event::EventKind;
use wharf_domain::ids::{Generation, InstanceId};

/// The waiting requests, by instance. The database has the results.
#[derive(Debug, Default)]
pub struct Waiters(Mutex<HashMap<InstanceId, Arc<WaitEntry>>>);

/// The requests that wait for one instance.
#[derive(Debug, Default)]
struct WaitEntry {
    changed: Notify,
    /// The last refused start, which leaves no event.
    refused: Mutex<Option<(Generation, EventKind)>>,
}

impl Waiters {
    /// Begins to wait for an instance. A refusal from now on is not missed.
    pub fn enter(&self, id: InstanceId) -> Waiter<'_> {
        Waiter {
            all: self,
            id,
            waited: Arc::clone(self.0.lock().entry(id).or_default()),
        }
    }

    /// Wakes the requests that wait for an instance.
    pub fn notify(&self, id: InstanceId) {
        if let Some(waited) = self.0.lock().get(&id) {
            waited.changed.notify_waiters();
        }
    }

    /// Tells the requests that wait for an instance why its start is refused. To be called before the
    /// write.
    pub fn refuse(&self, id: InstanceId, generation: Generation, why: EventKind) {
        if let Some(waited) = self.0.lock().get(&id) {
            *waited.refused.lock() = Some((generation, why));
        }
    }
}

/// A waiting request. Dropping the last one of an instance removes the instance's entry.
pub struct Waiter<'a> {
    all: &'a Waiters,
    id: InstanceId,
    waited: Arc<WaitEntry>,
}

impl Waiter<'_> {
    /// Waits until `done` returns true, or for the timeout. It is called after each change.
    pub async fn until(&self, at_most: Duration, done: impl Fn() -> bool) {
        let until = async {
            loop {
                // Registered before the check, or a change in between would be lost.
                let changed = self.waited.changed.notified();
                if done() {
                    return;
                }
                changed.await;
            }
        };
        // After the timeout the caller answers with the durable state.
        drop(tokio::time::timeout(at_most, until).await);
    }

    /// The reason why the start of a generation was refused.
    pub fn refusal(&self, of: Generation) -> Option<EventKind> {
        let refused = self.waited.refused.lock().clone();
        refused.and_then(|(generation, why)| (generation == of).then_some(why))
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let mut all = self.all.0.lock();
        self.waited = Arc::default();
        // One reference, the map's own, means that no request waits.
        if all
            .get(&self.id)
            .is_some_and(|waited| Arc::strong_count(waited) == 1)
        {
            all.remove(&self.id);
        }
    }
}

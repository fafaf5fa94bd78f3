//! Waiting requests: each waits until the reconciler has carried out its intent.

use crate::domain::ids::InstanceId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// The waiting requests, by instance. The database has the results.
#[derive(Debug, Default)]
pub struct Settled(Mutex<HashMap<InstanceId, Arc<Notify>>>);

impl Settled {
    /// Waits until `done` returns true, or for the timeout. It is called after each change.
    pub async fn wait(&self, id: InstanceId, at_most: Duration, done: impl Fn() -> bool) {
        let waiting = Waiting {
            all: self,
            id,
            changed: Arc::clone(self.lock().entry(id).or_default()),
        };
        let until = async {
            loop {
                // Registered before the check, or a change in between would be lost.
                let changed = waiting.changed.notified();
                if done() {
                    return;
                }
                changed.await;
            }
        };
        // After the timeout the caller answers with the durable state.
        drop(tokio::time::timeout(at_most, until).await);
    }

    /// Wakes the requests that wait for an instance.
    pub fn notify(&self, id: InstanceId) {
        if let Some(changed) = self.lock().get(&id) {
            changed.notify_waiters();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<InstanceId, Arc<Notify>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes the instance's entry with its last waiting request, however that ends.
struct Waiting<'a> {
    all: &'a Settled,
    id: InstanceId,
    changed: Arc<Notify>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut all = self.all.lock();
        self.changed = Arc::default();
        // One reference, the map's own, means that no request waits.
        if all
            .get(&self.id)
            .is_some_and(|changed| Arc::strong_count(changed) == 1)
        {
            all.remove(&self.id);
        }
    }
}

//! Lets a request wait until the reconciler has carried out its intent.

use crate::domain::ids::InstanceId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Who waits for which instance. How it came out is in the database.
#[derive(Debug, Default)]
pub struct Settled(Mutex<HashMap<InstanceId, Arc<Notify>>>);

impl Settled {
    /// Waits until `done`, which reads the database, says yes; at most so long.
    pub async fn wait(&self, id: InstanceId, at_most: Duration, done: impl Fn() -> bool) {
        let waiting = Waiting {
            all: self,
            id,
            bell: Arc::clone(self.lock().entry(id).or_default()),
        };
        let until = async {
            loop {
                // Listening begins before the look, so that no change falls in between.
                let rung = waiting.bell.notified();
                if done() {
                    return;
                }
                rung.await;
            }
        };
        // Past the bound the caller answers what is durable.
        drop(tokio::time::timeout(at_most, until).await);
    }

    /// The reconciler has written something about an instance.
    pub fn ring(&self, id: InstanceId) {
        if let Some(bell) = self.lock().get(&id) {
            bell.notify_waiters();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<InstanceId, Arc<Notify>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One who waits; also one whose client goes away meanwhile.
struct Waiting<'a> {
    all: &'a Settled,
    id: InstanceId,
    bell: Arc<Notify>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut all = self.all.lock();
        self.bell = Arc::default();
        // The map's alone: nobody else waits.
        if all
            .get(&self.id)
            .is_some_and(|bell| Arc::strong_count(bell) == 1)
        {
            all.remove(&self.id);
        }
    }
}

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
        let bell = Arc::clone(self.lock().entry(id).or_default());
        let until = async {
            loop {
                // Listening begins before the look, so that no change falls in between.
                let rung = bell.notified();
                if done() {
                    return;
                }
                rung.await;
            }
        };
        // Past the bound the caller answers what is durable.
        drop(tokio::time::timeout(at_most, until).await);
        let mut all = self.lock();
        // The map's and this one: nobody else waits.
        if Arc::strong_count(&bell) <= 2 {
            all.remove(&id);
        }
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

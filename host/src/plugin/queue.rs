//! A bounded queue in front of a number of places.

use crate::domain::driver::PluginError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Places, and a bound on the calls that wait for one.
#[derive(Debug)]
pub struct Queue {
    places: Semaphore,
    waiting: AtomicUsize,
    max_waiting: usize,
    max_wait: Duration,
}

impl Queue {
    /// An empty queue.
    pub fn new(places: usize, max_waiting: usize, max_wait: Duration) -> Self {
        Self {
            places: Semaphore::new(places),
            waiting: AtomicUsize::new(0),
            max_waiting,
            max_wait,
        }
    }

    /// Takes a place, in order of arrival. [`PluginError::Busy`] if too many calls wait, or this one
    /// for too long.
    pub async fn enter(&self) -> Result<SemaphorePermit<'_>, PluginError> {
        if let Ok(place) = self.places.try_acquire() {
            return Ok(place);
        }
        let _waiting = Waiting::join(self).ok_or(PluginError::Busy)?;
        match tokio::time::timeout(self.max_wait, self.places.acquire()).await {
            Ok(Ok(place)) => Ok(place),
            _ => Err(PluginError::Busy),
        }
    }
}

/// A waiting call, counted until it is dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn join(queue: &'a Queue) -> Option<Self> {
        queue
            .waiting
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| {
                (n < queue.max_waiting).then_some(n + 1)
            })
            .ok()
            .map(|_| Self(&queue.waiting))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_full_queue_is_busy_until_a_place_is_free() {
        let queue = Queue::new(1, 1, Duration::from_millis(20));
        let place = queue.enter().await.unwrap();
        let (first, second) = tokio::join!(queue.enter(), queue.enter());
        assert_eq!(first.unwrap_err(), PluginError::Busy);
        assert_eq!(second.unwrap_err(), PluginError::Busy);
        drop(place);
        assert!(queue.enter().await.is_ok());
        assert_eq!(queue.waiting.load(Ordering::Relaxed), 0);
    }
}

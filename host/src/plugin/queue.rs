//! A bounded queue in front of a number of places.

use crate::domain::driver::PluginError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Places, and a bound on how many may wait for one.
#[derive(Debug)]
pub struct Lane {
    places: Semaphore,
    waiting: AtomicUsize,
    max_waiting: usize,
    max_wait: Duration,
}

impl Lane {
    /// With so many places and so many waiting.
    pub fn new(places: usize, max_waiting: usize, max_wait: Duration) -> Self {
        Self {
            places: Semaphore::new(places),
            waiting: AtomicUsize::new(0),
            max_waiting,
            max_wait,
        }
    }

    /// Takes a place, in order of arrival; busy when too many wait already or for too long.
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

/// Counts one waiting call for as long as it lives.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn join(lane: &'a Lane) -> Option<Self> {
        lane.waiting
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| {
                (n < lane.max_waiting).then_some(n + 1)
            })
            .ok()
            .map(|_| Self(&lane.waiting))
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
    async fn one_too_many_is_busy_and_a_place_comes_free() {
        let lane = Lane::new(1, 1, Duration::from_millis(20));
        let place = lane.enter().await.unwrap();
        let (first, second) = tokio::join!(lane.enter(), lane.enter());
        assert_eq!(first.unwrap_err(), PluginError::Busy);
        assert_eq!(second.unwrap_err(), PluginError::Busy);
        drop(place);
        assert!(lane.enter().await.is_ok());
        assert_eq!(lane.waiting.load(Ordering::Relaxed), 0);
    }
}

//! How long a call computes: the time its future is polled. Epoch ticks are no measure of it; a guest
//! that waits a lot would be charged one at each wake-up.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// What one call has used, shared by its future and the epoch callback on the same thread.
#[derive(Debug)]
pub struct Meter {
    origin: Instant,
    limit_ns: u64,
    used_ns: AtomicU64,
    polled_at_ns: AtomicU64,
    exceeded: AtomicBool,
}

impl Meter {
    /// Starts at zero.
    pub fn new(limit: Duration) -> Self {
        Self {
            origin: Instant::now(),
            limit_ns: u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX),
            used_ns: AtomicU64::new(0),
            polled_at_ns: AtomicU64::new(0),
            exceeded: AtomicBool::new(false),
        }
    }

    /// Whether the limit is passed, within a poll. Remembers the answer.
    pub fn check(&self) -> bool {
        let running = self
            .now()
            .saturating_sub(self.polled_at_ns.load(Ordering::Relaxed));
        let over = self.used_ns.load(Ordering::Relaxed).saturating_add(running) > self.limit_ns;
        if over {
            self.exceeded.store(true, Ordering::Relaxed);
        }
        over
    }

    /// Whether a check ever said so.
    pub fn exceeded(&self) -> bool {
        self.exceeded.load(Ordering::Relaxed)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// A future whose polls are timed.
pub struct Metered<F> {
    meter: Arc<Meter>,
    future: Pin<Box<F>>,
}

impl<F: Future> Metered<F> {
    /// Times `future` on `meter`.
    pub fn new(meter: Arc<Meter>, future: F) -> Self {
        Self {
            meter,
            future: Box::pin(future),
        }
    }
}

impl<F: Future> Future for Metered<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let start = self.meter.now();
        self.meter.polled_at_ns.store(start, Ordering::Relaxed);
        let polled = self.future.as_mut().poll(cx);
        self.meter
            .used_ns
            .fetch_add(self.meter.now().saturating_sub(start), Ordering::Relaxed);
        polled
    }
}

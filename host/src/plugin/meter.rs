//! The meter of a call's CPU time: the time of the polls of its future. Counting epoch ticks would
//! charge a guest for each wake-up.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// The time used by one call. Its future and its epoch callback share the meter, on one thread.
#[derive(Debug)]
pub struct Meter {
    origin: Instant,
    limit_ns: u64,
    used_ns: AtomicU64,
    polled_at_ns: AtomicU64,
    exceeded: AtomicBool,
}

impl Meter {
    /// A meter at zero.
    pub fn new(limit: Duration) -> Self {
        Self {
            origin: Instant::now(),
            limit_ns: u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX),
            used_ns: AtomicU64::new(0),
            polled_at_ns: AtomicU64::new(0),
            exceeded: AtomicBool::new(false),
        }
    }

    /// Whether the call has exceeded its limit; called during a poll.
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

    /// Whether a check has found the limit exceeded.
    pub fn exceeded(&self) -> bool {
        self.exceeded.load(Ordering::Relaxed)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// A future with timed polls.
pub struct Metered<F> {
    meter: Arc<Meter>,
    future: Pin<Box<F>>,
}

impl<F: Future> Metered<F> {
    /// Times `future` with `meter`.
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

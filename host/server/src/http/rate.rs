//! A token bucket for each API key or session, and for each party that signs in.

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota};
use quick_cache::sync::Cache;
use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;
use wharf_config::Limits;

/// The most buckets in memory. A key whose bucket was evicted begins with a full one.
const MAX_BUCKETS: usize = 16_384;

/// The buckets, by the public id of a key or session, an address or an account.
pub(super) struct Rates {
    what: &'static str,
    buckets: Cache<Arc<str>, Arc<DefaultDirectRateLimiter>>,
    quota: Quota,
    clock: DefaultClock,
    burst: u32,
    window: u64,
}

/// The rate of a key, an address or an account is exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateExceeded {
    /// The holder of the bucket: `key`, `address` or `account`.
    pub what: &'static str,
    /// Seconds until the next request is allowed, rounded up.
    pub retry_after: u64,
    /// Requests of a full bucket.
    pub burst: u32,
    /// Seconds in which an empty bucket is filled, rounded up.
    pub window: u64,
}

impl Rates {
    /// Makes the buckets; none without a limit.
    pub(super) fn new(limits: &Limits) -> Option<Self> {
        let rate = NonZero::new(limits.requests_per_second)?;
        let burst = NonZero::new(limits.request_burst)?;
        let quota = Quota::per_second(rate).allow_burst(burst);
        let window = u64::from(burst.get().div_ceil(rate.get()));
        Some(Self::of("key", quota, window))
    }

    /// Makes buckets of this size that regain a request in each period.
    pub(super) fn every(what: &'static str, period: Duration, burst: NonZero<u32>) -> Self {
        let quota = Quota::with_period(period).unwrap_or(Quota::per_second(NonZero::<u32>::MIN));
        let window = period.saturating_mul(burst.get());
        Self::of(what, quota.allow_burst(burst), seconds(window))
    }

    fn of(what: &'static str, quota: Quota, window: u64) -> Self {
        Self {
            what,
            buckets: Cache::new(MAX_BUCKETS),
            burst: quota.burst_size().get(),
            quota,
            clock: DefaultClock::default(),
            window,
        }
    }

    /// Takes a request from a bucket.
    pub(super) fn take(&self, key: &Arc<str>) -> Result<(), RateExceeded> {
        let bucket = self.buckets.get(key).unwrap_or_else(|| {
            let bucket = Arc::new(DefaultDirectRateLimiter::direct(self.quota));
            self.buckets.insert(Arc::clone(key), Arc::clone(&bucket));
            bucket
        });
        bucket.check().map_err(|until| RateExceeded {
            what: self.what,
            retry_after: seconds(until.wait_time_from(self.clock.now())),
            burst: self.burst,
            window: self.window,
        })
    }
}

/// At least one second, because `Retry-After` has no fractions.
fn seconds(wait: Duration) -> u64 {
    let begun = u64::from(wait.subsec_nanos() > 0);
    wait.as_secs().saturating_add(begun).max(1)
}

#[cfg(test)]
mod tests {
    use super::Rates;
    use std::sync::Arc;
    use wharf_config::Limits;

    #[test]
    fn each_key_has_its_own_bucket() {
        let rates = Rates::new(&Limits {
            requests_per_second: 1,
            request_burst: 2,
            ..Limits::default()
        });
        let (rates, ann, bob) = (rates.unwrap(), Arc::from("ann"), Arc::from("bob"));
        assert!(rates.take(&ann).is_ok() && rates.take(&ann).is_ok());
        let exceeded = rates.take(&ann).unwrap_err();
        assert_eq!(
            (exceeded.retry_after, exceeded.burst, exceeded.window),
            (1, 2, 2)
        );
        assert!(rates.take(&bob).is_ok());
        let unlimited = Limits {
            requests_per_second: 0,
            ..Limits::default()
        };
        assert!(Rates::new(&unlimited).is_none());
    }
}

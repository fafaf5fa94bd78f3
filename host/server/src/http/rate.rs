//! Token buckets: of each API key or session and of its user, and of each party that signs in.

use axum::extract::Request;
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota};
use http::Method;
use quick_cache::sync::Cache;
use std::hash::Hash;
use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;
use wharf_config::LimitsConfig;
use wharf_domain::ids::UserId;
use wharf_ground::caller::Caller;

/// The most buckets in memory. A key whose bucket was evicted begins with a full one.
const MAX_BUCKETS: usize = 16_384;

/// The seconds in which a holder regains a burst. At the default rate, it lists and changes hundreds of
/// instances at once.
const BURST_S: NonZero<u32> = NonZero::new(10).unwrap();

/// The buckets of holders of one kind.
pub(super) struct RateLimits<K> {
    what: &'static str,
    buckets: Cache<K, Arc<DefaultDirectRateLimiter>>,
    quota: Quota,
    clock: DefaultClock,
    burst: u32,
    window: u64,
}

/// The rate of the holder of a bucket is exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateExceeded {
    /// The holder of the bucket: `key`, `user`, `address`, `account` or `session`; `records` of a user.
    pub what: &'static str,
    /// Seconds until the next request is allowed, rounded up.
    pub retry_after: u64,
    /// Requests of a full bucket.
    pub burst: u32,
    /// Seconds in which an empty bucket is filled, rounded up.
    pub window: u64,
}

impl<K: Clone + Eq + Hash> RateLimits<K> {
    /// Makes buckets that regain requests at this rate; none if it is 0.
    fn per_second(what: &'static str, rate: u32) -> Option<Self> {
        let rate = NonZero::new(rate)?;
        let quota = Quota::per_second(rate).allow_burst(rate.saturating_mul(BURST_S));
        Some(Self::of(what, quota, u64::from(BURST_S.get())))
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
    pub(super) fn take(&self, key: &K) -> Result<(), RateExceeded> {
        let bucket = self.buckets.get(key).unwrap_or_else(|| {
            let bucket = Arc::new(DefaultDirectRateLimiter::direct(self.quota));
            self.buckets.insert(key.clone(), Arc::clone(&bucket));
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

/// The rates of authenticated requests. Each is none without a limit.
pub(super) struct CallerRates {
    /// By the public id of the key or session.
    keys: Option<RateLimits<Arc<str>>>,
    users: Option<RateLimits<UserId>>,
}

impl CallerRates {
    pub(super) fn new(limits: &LimitsConfig) -> Self {
        Self {
            keys: RateLimits::per_second("key", limits.requests_per_second),
            users: RateLimits::per_second("user", limits.requests_per_second_per_user),
        }
    }

    /// Takes a request of a caller. One that ends something counts to its key or session alone, because
    /// another key of the user, which may have been stolen, must not delay it.
    pub(super) fn take(&self, caller: &Caller, request: &Request) -> Result<(), RateExceeded> {
        let key = self.keys.as_ref().map(|keys| keys.take(&caller.key_id));
        key.transpose()?;
        let users = self.users.as_ref().filter(|_| !ends_something(request));
        let user = users.map(|users| users.take(&caller.user));
        user.transpose()?;
        Ok(())
    }
}

/// Whether a request stops or deletes something, ends access, or needs no session that it has.
pub(super) fn ends_something(request: &Request) -> bool {
    let path = request.uri().path();
    request.method() == Method::DELETE
        || path.ends_with("/stop/")
        || ["/auth/password/", "/auth/sign-in/"].contains(&path)
}

/// At least one second, because `Retry-After` has no fractions.
fn seconds(wait: Duration) -> u64 {
    let begun = u64::from(wait.subsec_nanos() > 0);
    wait.as_secs().saturating_add(begun).max(1)
}

#[cfg(test)]
mod tests {
    use super::RateLimits;

    #[test]
    fn each_holder_has_its_own_bucket() {
        let rates = RateLimits::per_second("key", 1).unwrap();
        assert!((0..10).all(|_| rates.take(&"ann").is_ok()));
        let exceeded = rates.take(&"ann").unwrap_err();
        assert_eq!(
            (exceeded.retry_after, exceeded.burst, exceeded.window),
            (1, 10, 10)
        );
        assert!(rates.take(&"bob").is_ok());
        assert!(RateLimits::<u8>::per_second("key", 0).is_none());
    }
}

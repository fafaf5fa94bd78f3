//! `X-Request-Id`: ties an answer to its log lines.

use http::{HeaderMap, HeaderName, HeaderValue};
use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use uuid::Uuid;

/// The header.
pub(super) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Longest id that is taken over from a caller.
const MAX_LENGTH: usize = 128;

/// Makes ids: distinct within a run of the service, and as good as distinct between runs.
#[derive(Debug)]
pub(super) struct RequestIds {
    /// Of this run.
    run: u64,
    /// The next that no thread has.
    next: AtomicU64,
}

/// So many numbers a thread takes at a time, so that threads seldom wait for each other's.
const AT_ONCE: u64 = 1 << 10;

thread_local! {
    /// Of which run, and which numbers of it, this thread still has.
    static NUMBERS: Cell<(u64, u64, u64)> = const { Cell::new((0, 0, 0)) };
}

impl Default for RequestIds {
    fn default() -> Self {
        Self {
            run: RandomState::new().hash_one(0),
            next: AtomicU64::new(0),
        }
    }
}

impl RequestIds {
    /// The caller's id if it sent one that is a sane token, else a new one.
    pub(super) fn of(&self, headers: &HeaderMap) -> HeaderValue {
        let mut given = headers.get_all(X_REQUEST_ID).iter();
        match (given.next(), given.next()) {
            (Some(id), None) if is_sane(id) => id.clone(),
            _ => self.new_id(),
        }
    }

    /// Each once.
    fn number(&self) -> u64 {
        let (run, mut next, mut end) = NUMBERS.get();
        if run != self.run || next == end {
            next = self.next.fetch_add(AT_ONCE, Ordering::Relaxed);
            end = next + AT_ONCE;
        }
        NUMBERS.set((self.run, next + 1, end));
        next
    }

    /// 32 hexadecimal digits: the run, and a number that no other request of it has.
    fn new_id(&self) -> HeaderValue {
        let number = u128::from(self.run) << 64 | u128::from(self.number());
        let mut id = [0; 32];
        Uuid::from_u128(number).simple().encode_lower(&mut id);
        HeaderValue::from_bytes(&id).unwrap_or_else(|_| HeaderValue::from_static("none"))
    }
}

fn is_sane(id: &HeaderValue) -> bool {
    (1..=MAX_LENGTH).contains(&id.len())
        && id
            .as_bytes()
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || b"-_.:+/=".contains(b))
}

#[cfg(test)]
mod tests {
    use super::{RequestIds, X_REQUEST_ID};
    use http::{HeaderMap, HeaderValue};
    use std::collections::HashSet;

    #[test]
    fn sane_ids_are_taken_over() {
        let ids = RequestIds::default();
        let of = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(X_REQUEST_ID, HeaderValue::from_str(value).unwrap());
            }
            ids.of(&headers).to_str().unwrap().to_owned()
        };
        assert_eq!(of(&["abc-1"]), "abc-1");
        let long = "x".repeat(129);
        for insane in [&["a b"][..], &[""], &[&long], &["a", "b"], &["a\"b"], &[]] {
            let id = of(insane);
            assert!(
                id.len() >= 17 && !insane.contains(&id.as_str()),
                "{insane:?}"
            );
        }
    }

    #[test]
    fn no_two_requests_have_the_same() {
        // Two listeners, whose requests take turns on the same threads, for more than they take at once.
        let both = [RequestIds::default(), RequestIds::default()];
        let some = || {
            let one = |n: usize| both[n % 2].of(&HeaderMap::new());
            let alone = (0..3_000).map(|_| one(0));
            alone.chain((0..1_000).map(one)).collect::<Vec<_>>()
        };
        let all: Vec<_> = std::thread::scope(|scope| {
            let threads = [(); 4].map(|()| scope.spawn(some));
            threads.map(|thread| thread.join().unwrap()).concat()
        });
        let distinct: HashSet<_> = all.iter().collect();
        assert_eq!((distinct.len(), all.len()), (16_000, 16_000));
    }
}

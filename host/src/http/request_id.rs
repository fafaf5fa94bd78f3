//! `X-Request-Id`: ties an answer to its log lines.

use http::{HeaderMap, HeaderName, HeaderValue};
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
    count: AtomicU64,
}

impl Default for RequestIds {
    fn default() -> Self {
        Self {
            run: RandomState::new().hash_one(0),
            count: AtomicU64::new(0),
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

    /// 32 hexadecimal digits: the run, and the request's number in it.
    fn new_id(&self) -> HeaderValue {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        let number = u128::from(self.run) << 64 | u128::from(count);
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
        assert_ne!(of(&[]), of(&[]));
    }
}

//! Compression, and a bounded number of threads for work that computes for long. The layer of `tower-http` would
//! compress an answer at each request, and these answers are kept in their compressed form.

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http::HeaderMap;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderValue, VARY};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::io::Write;
use std::num::NonZero;
use std::sync::{Arc, Weak};
use std::thread::available_parallelism;
use tokio::sync::Semaphore;
use wharf_domain::ids::UserId;

/// Shorter responses fit into one packet uncompressed.
const MIN_BYTES: usize = 1400;

/// Threads for work that computes for long. They are shared fairly: one user has one job in their
/// queue, and the user's other jobs wait behind it.
pub(super) struct Workers {
    threads: Arc<Semaphore>,
    /// The queue of each user that has jobs.
    users: Mutex<HashMap<UserId, Weak<Semaphore>>>,
}

impl Workers {
    /// Leaves half of the cores to short requests.
    pub(super) fn new() -> Self {
        let cores = available_parallelism().map_or(1, NonZero::get);
        Self {
            threads: Arc::new(Semaphore::new((cores / 2).max(1))),
            users: Mutex::default(),
        }
    }

    /// Runs a user's work as soon as a thread is free; none if it panics. It runs to its end even if
    /// its caller goes away, and holds its thread until then.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        user: UserId,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let turn = self.queue(user).acquire_owned().await.ok()?;
        let thread = Arc::clone(&self.threads).acquire_owned().await.ok()?;
        let work = move || {
            let _held = (turn, thread);
            work()
        };
        tokio::task::spawn_blocking(work).await.ok()
    }

    fn queue(&self, user: UserId) -> Arc<Semaphore> {
        let mut users = self.users.lock();
        if let Some(queue) = users.get(&user).and_then(Weak::upgrade) {
            return queue;
        }
        users.retain(|_, queue| queue.strong_count() > 0);
        let queue = Arc::new(Semaphore::new(1));
        users.insert(user, Arc::downgrade(&queue));
        queue
    }
}

/// Whether `Accept-Encoding` names gzip and does not rule it out.
pub(super) fn accepts_gzip(headers: &HeaderMap) -> bool {
    headers.get_all(ACCEPT_ENCODING).iter().any(|value| {
        value.to_str().unwrap_or_default().split(',').any(|coding| {
            let mut parts = coding.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default();
            let weight = parts.find_map(|p| p.strip_prefix("q=").or_else(|| p.strip_prefix("Q=")));
            let refused = weight.is_some_and(|q| q.trim().parse() == Ok(0.0_f32));
            name.eq_ignore_ascii_case("gzip") && !refused
        })
    })
}

/// Whether compression is worth its time.
pub(super) fn is_long(plain: &[u8]) -> bool {
    plain.len() >= MIN_BYTES
}

/// Compresses bytes at the fastest level.
pub(super) fn gzip(plain: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    // Writing to a vector cannot fail.
    let _ = encoder.write_all(plain);
    encoder.finish().unwrap_or_default().into()
}

/// Declares a response as compressed, or as one that could be.
pub(super) fn declare(headers: &mut HeaderMap, gzipped: bool) {
    headers.insert(VARY, HeaderValue::from_name(ACCEPT_ENCODING));
    if gzipped {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
}

#[cfg(test)]
mod tests {
    use super::{UserId, Workers, accepts_gzip};
    use http::{HeaderMap, HeaderValue, header::ACCEPT_ENCODING};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    fn accepting(value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(value))])
    }

    #[test]
    fn accepted_or_not() {
        for (value, expected) in [
            ("gzip", true),
            ("br, GZIP;q=0.5", true),
            ("gzip;q=0", false),
            ("gzip; q=0.0", false),
            ("br", false),
            ("", false),
            ("x-gzip", false),
        ] {
            assert_eq!(accepts_gzip(&accepting(value)), expected, "{value}");
        }
    }

    #[tokio::test]
    async fn work_beyond_the_threads_waits_and_abandoned_work_keeps_its_thread() {
        let workers = Arc::new(Workers::new());
        let limit = workers.threads.available_permits();
        let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let mut tasks = tokio::task::JoinSet::new();
        for n in 0..4 * limit as u64 {
            let (workers, running, most) = (workers.clone(), running.clone(), most.clone());
            let work = move || {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(20));
                running.fetch_sub(1, Ordering::SeqCst);
            };
            tasks.spawn(async move {
                let timeout = Duration::from_millis(if n % 2 == 0 { 5 } else { 10_000 });
                tokio::time::timeout(timeout, workers.run(UserId(n), work)).await
            });
        }
        tasks.join_all().await;
        assert!((1..=limit).contains(&most.load(Ordering::SeqCst)));
    }

    #[tokio::test]
    async fn the_queue_of_one_user_delays_no_other() {
        let workers = Arc::new(Workers::new());
        let (ended, order) = std::sync::mpsc::channel();
        let (begun, running) = tokio::sync::oneshot::channel();
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let first = move || {
            begun.send(()).unwrap();
            wait.recv().unwrap();
        };
        // All threads are busy, then one user has ten jobs and another one has one.
        let all = workers.threads.available_permits();
        let rest = u32::try_from(all - 1).unwrap();
        let _others = Arc::clone(&workers.threads).acquire_many_owned(rest).await;
        let mut tasks = tokio::task::JoinSet::new();
        let busy = workers.clone();
        tasks.spawn(async move { busy.run(UserId(0), first).await });
        running.await.unwrap();
        for user in [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2] {
            let (workers, ended) = (workers.clone(), ended.clone());
            let work = move || ended.send(user).unwrap();
            tasks.spawn(async move { workers.run(UserId(user), work).await });
            tokio::task::yield_now().await;
        }
        go.send(()).unwrap();
        tasks.join_all().await;
        let order: Vec<u64> = order.try_iter().collect();
        assert!(order[..2].contains(&2), "{order:?}");
    }
}

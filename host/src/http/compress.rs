//! Compression of long responses, on a bounded number of threads beside those that serve requests.

use super::respond::Response;
use axum::body::Body;
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderValue, VARY};
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Body as _;
use std::io::Write;
use std::num::NonZero;
use std::sync::Arc;
use std::thread::available_parallelism;
use tokio::sync::Semaphore;

/// Shorter responses fit into one packet uncompressed.
const MIN_BYTES: u64 = 1400;

/// Threads for work that computes for long.
pub(super) struct Workers(Arc<Semaphore>);

impl Workers {
    /// Leaves half of the cores to short requests.
    pub(super) fn new() -> Self {
        let cores = available_parallelism().map_or(1, NonZero::get);
        Self(Arc::new(Semaphore::new((cores / 2).max(1))))
    }

    /// Runs work as soon as a thread is free; none if it panics. It runs to its end even if its
    /// caller goes away, and holds its thread until then.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let permit = Arc::clone(&self.0).acquire_owned().await.ok()?;
        let work = move || {
            let _permit = permit;
            work()
        };
        tokio::task::spawn_blocking(work).await.ok()
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

/// Compresses bytes fast rather than well.
pub(super) fn gzip(plain: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(plain)?;
    encoder.finish()
}

/// Declares a response as compressed, or as one that could be.
pub(super) fn declare(headers: &mut HeaderMap, gzipped: bool) {
    headers.insert(VARY, HeaderValue::from_name(ACCEPT_ENCODING));
    if gzipped {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
}

/// Compresses a successful response that is long, where `request` accepts that.
pub(super) async fn compress(
    workers: &Workers,
    request: &HeaderMap,
    response: Response,
) -> Response {
    if response.status() != StatusCode::OK || response.body().size_hint().lower() < MIN_BYTES {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    if !accepts_gzip(request) {
        declare(&mut parts.headers, false);
        return Response::from_parts(parts, body);
    }
    let plain = body.collect().await.map(|body| body.to_bytes());
    let plain = plain.unwrap_or_default();
    let gzipped = workers.run({
        let plain = plain.clone();
        move || gzip(&plain).ok()
    });
    let gzipped = gzipped.await.flatten().map(Bytes::from);
    declare(&mut parts.headers, gzipped.is_some());
    Response::from_parts(parts, Body::from(gzipped.unwrap_or(plain)))
}

#[cfg(test)]
mod tests {
    use super::{Workers, accepts_gzip, compress};
    use crate::api::Reply;
    use crate::http::respond;
    use flate2::read::GzDecoder;
    use http::{HeaderMap, HeaderValue, header::ACCEPT_ENCODING};
    use http_body_util::BodyExt;
    use std::io::Read;
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
    async fn long_responses_only() {
        let workers = Workers::new();
        let done = |body: &[u8]| respond::reply(Reply::Done(body.to_vec().into()));
        let body = format!("[{}1]", "1,".repeat(5000)).into_bytes();
        let packed = compress(&workers, &accepting("gzip"), done(&body)).await;
        assert_eq!(packed.headers()["content-encoding"], "gzip");
        let packed = packed.into_body().collect().await.unwrap().to_bytes();
        let mut plain = Vec::new();
        GzDecoder::new(&packed[..]).read_to_end(&mut plain).unwrap();
        assert!(plain == body && packed.len() < body.len() / 4);
        let unasked = compress(&workers, &HeaderMap::new(), done(&body)).await;
        assert!(!unasked.headers().contains_key("content-encoding"));
        assert_eq!(unasked.headers()["vary"], "accept-encoding");
        for (length, long) in [(1400, true), (1399, false)] {
            let response = compress(&workers, &accepting("gzip"), done(&vec![b' '; length])).await;
            assert_eq!(response.headers().contains_key("content-encoding"), long);
        }
    }

    #[tokio::test]
    async fn work_beyond_the_threads_waits_and_abandoned_work_keeps_its_thread() {
        let workers = Arc::new(Workers::new());
        let limit = workers.0.available_permits();
        let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let mut tasks = tokio::task::JoinSet::new();
        for n in 0..4 * limit {
            let (workers, running, most) = (workers.clone(), running.clone(), most.clone());
            let work = move || {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(20));
                running.fetch_sub(1, Ordering::SeqCst);
            };
            tasks.spawn(async move {
                let patience = Duration::from_millis(if n % 2 == 0 { 5 } else { 10_000 });
                tokio::time::timeout(patience, workers.run(work)).await
            });
        }
        tasks.join_all().await;
        assert!((1..=limit).contains(&most.load(Ordering::SeqCst)));
    }
}

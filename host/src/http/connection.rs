//! One connection: HTTP/1.1 or HTTP/2, never idle for long, ended politely at shutdown.

use super::respond::Response;
use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::{Instant, interval_at};

/// Headers of one request, in number and in bytes together.
const MAX_HEADERS: usize = 64;
const MAX_HEADER_BYTES: usize = 32 * 1024;

/// Requests that one HTTP/2 connection may have under way.
const MAX_STREAMS: u32 = 100;

/// How often a silent HTTP/2 peer is asked whether it is there, and how long it may take to say so.
const PING_EVERY: Duration = Duration::from_secs(20);
const PING_TIME: Duration = Duration::from_secs(10);

/// How long a connection that was told to end may still take to read its last answer.
const LINGER: Duration = Duration::from_secs(60);

/// The same when the server ends. Who is silent, as an HTTP/2 peer may be for ever, is not waited for.
const LAST_LINGER: Duration = Duration::from_secs(5);

/// Answers requests.
pub(super) trait Handle: Send + Sync + 'static {
    fn handle(&self, request: Request<Incoming>) -> impl Future<Output = Response> + Send;
}

/// How connections are served.
pub(super) fn builder(header_time: Duration) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(header_time)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEADER_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(32 * 1024)
        .max_concurrent_streams(MAX_STREAMS)
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_TIME);
    builder
}

/// Requests of one connection so far.
#[derive(Default)]
struct Activity {
    begun: AtomicU64,
    ended: AtomicU64,
}

/// Counts a request as ended, however it ends.
struct Ended(Arc<Activity>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::Relaxed);
    }
}

/// Serves a connection to its end. It is told to end when no request is under way and none has
/// begun for `idle`, and when `closing` turns true.
pub(super) async fn serve<H, I>(
    builder: &Builder<TokioExecutor>,
    io: I,
    handler: Arc<H>,
    idle: Duration,
    mut closing: watch::Receiver<bool>,
) where
    H: Handle,
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let activity = Arc::new(Activity::default());
    let counted = Arc::clone(&activity);
    let service = service_fn(move |request| {
        counted.begun.fetch_add(1, Ordering::Relaxed);
        let ended = Ended(Arc::clone(&counted));
        let handler = Arc::clone(&handler);
        async move {
            let response: hyper::Response<Full<Bytes>> = handler.handle(request).await;
            drop(ended);
            Ok::<_, Infallible>(response)
        }
    });
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(io), service));
    let mut tick = interval_at(Instant::now() + idle, idle);
    let (mut seen, mut quiet, mut ending) = (0, Duration::ZERO, false);
    loop {
        tokio::select! {
            result = connection.as_mut() => {
                if let Err(error) = result {
                    tracing::debug!("connection ended: {error}");
                }
                return;
            }
            changed = closing.changed() => {
                connection.as_mut().graceful_shutdown();
                ending = true;
                tick = interval_at(Instant::now() + LAST_LINGER, LAST_LINGER);
                if changed.is_err() {
                    // The server itself is gone.
                    let _ = connection.as_mut().await;
                    return;
                }
            }
            _ = tick.tick() => {
                let begun = activity.begun.load(Ordering::Relaxed);
                let busy = begun != activity.ended.load(Ordering::Relaxed);
                if ending && !busy {
                    return;
                }
                if busy || begun != seen {
                    (seen, quiet) = (begun, Duration::ZERO);
                    continue;
                }
                quiet += idle;
                // Without any request so far there is no answer that could still be read.
                if begun == 0 || quiet > LINGER.max(idle) {
                    return;
                }
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

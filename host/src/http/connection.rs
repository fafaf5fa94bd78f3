//! One connection: HTTP/1.1 or HTTP/2, ended politely when it is told to.

use super::idle::{Activity, Order};
use super::respond::Response;
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use std::convert::Infallible;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};

/// Headers of one request, in number and in bytes together.
const MAX_HEADERS: usize = 64;
const MAX_HEADER_BYTES: usize = 32 * 1024;

/// Requests that one HTTP/2 connection may have under way.
const MAX_STREAMS: u32 = 100;

/// How often a silent HTTP/2 peer is asked whether it is there, and how long it may take to say so.
const PING_EVERY: Duration = Duration::from_secs(20);
const PING_TIME: Duration = Duration::from_secs(10);

/// Answers requests.
pub(super) trait Handle: Send + Sync + 'static {
    fn handle(&self, request: Request<Incoming>) -> impl Future<Output = Response> + Send;
}

/// How connections are served. A head that does not come ends with its connection, see
/// [`super::idle`]: hyper's own time limit would be a new timer for every request.
pub(super) fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .header_read_timeout(None)
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

/// What each request of a connection needs.
struct Served<H> {
    handler: Arc<H>,
    activity: Arc<Activity>,
}

/// A request under way; counted as ended however it ends.
struct Running<H>(Arc<Served<H>>);

impl<H> Drop for Running<H> {
    fn drop(&mut self) {
        self.0.activity.end();
    }
}

/// Serves a connection to its end, or until it is told to end.
pub(super) async fn serve<H, I>(
    builder: &Builder<TokioExecutor>,
    io: I,
    handler: Arc<H>,
    activity: Arc<Activity>,
) where
    H: Handle,
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let served = Arc::new(Served {
        handler,
        activity: Arc::clone(&activity),
    });
    let service = service_fn(move |request| {
        served.activity.begin();
        let running = Running(Arc::clone(&served));
        async move {
            let Running(served) = &running;
            Ok::<_, Infallible>(served.handler.handle(request).await)
        }
    });
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(io), service));
    let (mut waker, mut told): (Option<Waker>, _) = (None, false);
    let ended = poll_fn(|context| {
        if !waker.as_ref().is_some_and(|w| w.will_wake(context.waker())) {
            activity.wake(context.waker());
            waker = Some(context.waker().clone());
        }
        match activity.order() {
            Order::End if !told => {
                told = true;
                connection.as_mut().graceful_shutdown();
            }
            Order::GoOn | Order::End => {}
            Order::Drop => return Poll::Ready(Ok(())),
        }
        connection.as_mut().poll(context)
    });
    if let Err(error) = ended.await {
        tracing::debug!("connection ended: {error}");
    }
}

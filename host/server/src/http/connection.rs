//! One connection, HTTP/1.1 or HTTP/2: served until it is idle, makes no progress, or the server
//! stops.

use super::activity::{Activity, BodyProgress};
use super::body::RequestBody;
use super::client::RequestClient;
use super::linger::Linger;
use super::listen::ConnectionService;
use super::respond;
use super::unsent::{RequestFacts, Unread, Unsent, UnsentBody};
use axum::Router;
use axum::body::Body;
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::{Instant, interval_at};
use tower::Service;
use wharf_config::{LimitsConfig, TrustedProxies};

/// The largest number of headers of one request.
const MAX_HEADERS: usize = 64;

/// The size limit of the head of one request in bytes.
const MAX_HEADER_BYTES: u32 = 32 * 1024;

/// The largest number of concurrent streams on one HTTP/2 connection, the minimum that RFC 9113 recommends.
const MAX_STREAMS: u32 = 100;

/// The bytes that an HTTP/2 connection may receive before a handler reads them. A stream or a connection
/// needs no more, since a body is read as it arrives.
const WINDOW: u32 = 64 * 1024;

/// The interval of HTTP/2 keep-alive pings, and the time for their answer.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest interval between two looks at a connection.
const MAX_LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// The time for an idle peer to close its connection when the server stops. HTTP/2 peers are asked
/// to, and some never answer.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// The time for a handshake, and for the head of the first request: a client sends it at once.
pub(super) const HEADER_TIMEOUT: Duration = Duration::from_secs(10);

/// Serves connections with these settings.
#[derive(Clone)]
pub(super) struct Connections {
    builder: Builder<TokioExecutor>,
    router: Router,
    unsent: Arc<Unsent>,
    proxies: Arc<TrustedProxies>,
    timeouts: Timeouts,
}

/// The times of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timeouts {
    /// Until the head of the first request.
    pub(super) header: Duration,
    /// From one request to the head of the next.
    pub(super) idle: Duration,
    pub(super) write: Duration,
}

impl Timeouts {
    pub(super) fn of(limits: &LimitsConfig) -> Self {
        Self {
            header: HEADER_TIMEOUT,
            idle: Duration::from_millis(limits.idle_timeout_ms),
            write: Duration::from_millis(limits.write_timeout_ms),
        }
    }
}

impl Connections {
    pub(super) fn new(
        router: Router,
        timeouts: Timeouts,
        unsent: Arc<Unsent>,
        proxies: Arc<TrustedProxies>,
    ) -> Self {
        let mut builder = Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            // It begins when the connection is idle. The watchdog has a shorter one for the first head.
            .header_read_timeout(timeouts.idle.max(timeouts.header))
            .max_headers(MAX_HEADERS)
            .max_buf_size(MAX_HEADER_BYTES as usize);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_header_list_size(MAX_HEADER_BYTES)
            .max_concurrent_streams(MAX_STREAMS)
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_TIMEOUT);
        Self {
            builder,
            router,
            unsent,
            proxies,
            timeouts,
        }
    }

    fn respond(
        &self,
        request: Request<Incoming>,
        activity: &Arc<Activity>,
    ) -> impl Future<Output = Result<http::Response<UnsentBody>, Unread>> + Send + use<> {
        let running = RunningRequest::begin(activity);
        let unsent = Arc::clone(&self.unsent);
        let peer = activity.peer;
        let client = peer.map(|peer| RequestClient::of(peer, request.headers(), &self.proxies));
        let mut request = RequestBody::wrap(request, activity).map(Body::new);
        request.extensions_mut().insert(Arc::clone(activity));
        client.map(|client| request.extensions_mut().insert(client));
        let asked = RequestFacts::new(&request);
        let response = self.router.clone().call(request);
        async move {
            let Ok(response) = response.await;
            let mut response = UnsentBody::track(response, &asked, &running.0, &unsent)?;
            respond::finish(&mut response, running.0.has_unread_body());
            Ok(response)
        }
    }
}

impl ConnectionService for Connections {
    async fn serve<I>(&self, io: I, activity: &Arc<Activity>, mut stopped: watch::Receiver<bool>)
    where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let service = service_fn(|request| self.respond(request, activity));
        let io = TokioIo::new(Linger::new(io, activity));
        let connection = (self.builder).serve_connection_with_upgrades(io, service);
        let mut connection = pin!(connection);
        let mut stopped = pin!(async move { drop(stopped.wait_for(|stopped| *stopped).await) });
        let Timeouts {
            header,
            idle,
            write,
        } = self.timeouts;
        let mut watchdog = Watchdog::new(self.timeouts);
        let interval = header.min(idle).min(write) / 2;
        let interval = interval.clamp(Duration::from_millis(1), MAX_LOOK_INTERVAL);
        let mut tick = interval_at(Instant::now() + interval, interval);
        loop {
            let verdict = tokio::select! {
                biased;
                ended = connection.as_mut() => {
                    if let Err(error) = ended {
                        tracing::debug!("connection ended: {error}");
                    }
                    return activity.upgrade_ended().await;
                }
                () = &mut stopped, if !watchdog.stopping => {
                    watchdog.stopping = true;
                    ConnectionAction::Close
                }
                now = tick.tick() => watchdog.look(activity, now),
            };
            match verdict {
                ConnectionAction::Keep => {}
                ConnectionAction::Close => connection.as_mut().graceful_shutdown(),
                ConnectionAction::Drop => return,
            }
        }
    }
}

/// A request whose response does not exist yet.
struct RunningRequest(Arc<Activity>);

impl RunningRequest {
    fn begin(activity: &Arc<Activity>) -> Self {
        activity.requests.fetch_add(1, Ordering::Relaxed);
        activity.running.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(activity))
    }
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The next action on a connection.
#[derive(Debug, PartialEq, Eq)]
enum ConnectionAction {
    Keep,
    /// Close it gracefully.
    Close,
    Drop,
}

/// Detects connections that are idle or do not read their responses. One timer for each connection
/// is cheaper than one for each request, and hyper has none for HTTP/2 or before the first byte.
/// `TCP_USER_TIMEOUT` cannot take its place: it spares a client that takes a few bytes, but less than 64 KiB in
/// the time, and it knows neither the streams of HTTP/2 nor the memory of [`Unsent`].
struct Watchdog {
    timeouts: Timeouts,
    stopping: bool,
    requests: u64,
    idle_since: Instant,
    /// The responses that were not sent completely at the last look.
    sending: Vec<WatchedBody>,
}

/// A response body and its last progress. Each body is watched by itself, since one stream of HTTP/2
/// may progress while others hold memory.
struct WatchedBody {
    progress: BodyProgress,
    since: Instant,
}

impl Watchdog {
    fn new(timeouts: Timeouts) -> Self {
        let now = Instant::now();
        Self {
            timeouts,
            stopping: false,
            requests: 0,
            idle_since: now,
            sending: Vec::new(),
        }
    }

    fn look(&mut self, activity: &Activity, now: Instant) -> ConnectionAction {
        let requests = activity.requests.load(Ordering::Relaxed);
        let running = activity.running.load(Ordering::Relaxed) > 0;
        self.watch(&activity.bodies(), now);
        if running || !self.sending.is_empty() || requests != self.requests {
            self.idle_since = now;
        }
        self.requests = requests;
        let idle = now - self.idle_since;
        let limit = match requests {
            0 => self.timeouts.header,
            _ => self.timeouts.idle,
        };
        let stalled = |body: &WatchedBody| now - body.since >= self.timeouts.write;
        if self.sending.iter().any(stalled) {
            tracing::debug!("connection dropped: its client does not read");
            ConnectionAction::Drop
        } else if self.stopping && idle >= limit.min(CLOSE_TIMEOUT) {
            ConnectionAction::Drop
        } else if idle < limit {
            ConnectionAction::Keep
        } else if requests == 0 || idle >= limit + self.timeouts.header {
            ConnectionAction::Drop
        } else {
            ConnectionAction::Close
        }
    }

    fn watch(&mut self, bodies: &[BodyProgress], now: Instant) {
        let before = std::mem::take(&mut self.sending);
        let unchanged = |progress: &BodyProgress| {
            let same = |w: &&WatchedBody| {
                w.progress.body == progress.body && w.progress.pieces == progress.pieces
            };
            before.iter().find(same).map(|watched| watched.since)
        };
        let watch = |progress: &BodyProgress| WatchedBody {
            progress: *progress,
            since: unchanged(progress).unwrap_or(now),
        };
        self.sending = bodies.iter().map(watch).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::{Activity, ConnectionAction, RunningRequest, Timeouts, Watchdog};
    use std::sync::Arc;
    use std::time::Duration;

    const SECOND: Duration = Duration::from_secs(1);

    const TIMEOUTS: Timeouts = Timeouts {
        header: Duration::from_secs(10),
        idle: Duration::from_secs(75),
        write: Duration::from_secs(30),
    };

    #[test]
    fn a_connection_without_requests_is_dropped_and_an_idle_one_closed_first() {
        let activity = Arc::<Activity>::default();
        let mut watchdog = Watchdog::new(TIMEOUTS);
        let start = watchdog.idle_since;
        assert_eq!(
            watchdog.look(&activity, start + 9 * SECOND),
            ConnectionAction::Keep
        );
        assert_eq!(
            watchdog.look(&activity, start + 10 * SECOND),
            ConnectionAction::Drop
        );
        drop(RunningRequest::begin(&activity));
        let mut look = |seconds| watchdog.look(&activity, start + seconds * SECOND);
        assert_eq!(look(20), ConnectionAction::Keep);
        assert_eq!(look(94), ConnectionAction::Keep);
        assert_eq!(look(95), ConnectionAction::Close);
        assert_eq!(look(105), ConnectionAction::Drop);
    }

    #[test]
    fn a_running_request_is_waited_for_and_an_unread_response_is_not() {
        let activity = Arc::<Activity>::default();
        let mut watchdog = Watchdog::new(TIMEOUTS);
        let start = watchdog.idle_since;
        let running = RunningRequest::begin(&activity);
        let mut look = |seconds| watchdog.look(&activity, start + seconds * SECOND);
        assert_eq!(look(100), ConnectionAction::Keep);
        let body = activity.body_begun();
        drop(running);
        assert_eq!(look(129), ConnectionAction::Keep);
        activity.body_progressed(body);
        assert_eq!(look(140), ConnectionAction::Keep);
        assert_eq!(look(169), ConnectionAction::Keep);
        // Requests that come meanwhile are no progress of the response.
        drop(RunningRequest::begin(&activity));
        assert_eq!(look(170), ConnectionAction::Drop);
    }

    #[test]
    fn a_stalled_stream_is_not_hidden_by_others() {
        let activity = Arc::<Activity>::default();
        let mut watchdog = Watchdog::new(TIMEOUTS);
        let start = watchdog.idle_since;
        let mut look = |seconds| watchdog.look(&activity, start + seconds * SECOND);
        let (_stalled, other) = (activity.body_begun(), activity.body_begun());
        for seconds in 0..30 {
            assert_eq!(look(seconds), ConnectionAction::Keep);
            activity.body_progressed(other);
            activity.body_sent(activity.body_begun());
        }
        assert_eq!(look(30), ConnectionAction::Drop);
    }
}

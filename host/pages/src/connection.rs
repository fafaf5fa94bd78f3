//! One connection of a visitor, HTTP/1.1 or HTTP/2, or the WebSocket that it becomes.

use crate::exchange::Held;
use crate::gateway::Gateway;
use crate::upstream::Lease;
use crate::web_socket::pass;
use crate::wire::{Wire, Wired};
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use parking_lot::Mutex;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, interval_at};

/// The largest head that is read, so that one that cookies have made too large gets its answer.
const MAX_READ: usize = 256 * 1024;
const MAX_HEADERS: usize = 200;

/// The streams of one HTTP/2 connection, and the bytes that they may hold before a page reads them. Smaller
/// windows hold up a fast upload.
const MAX_STREAMS: u32 = 128;
const STREAM_WINDOW: u32 = 1024 * 1024;
const WINDOW: u32 = 2 * 1024 * 1024;
const MAX_FRAME: u32 = 64 * 1024;
const MAX_SEND_BUFFER: usize = 128 * 1024;

/// The interval of HTTP/2 pings, and the time for their answer.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// The time for the first head, and between two requests.
const FIRST_HEAD: Duration = Duration::from_secs(10);
const IDLE: Duration = Duration::from_secs(75);
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The time for requests in progress when the server stops. Some of them would never end.
const STOP: Duration = Duration::from_secs(3);

/// The other end of a connection, and Wharf's interest in it.
pub struct AcceptedConnection {
    /// The address of the other end, which may be a proxy.
    pub peer: IpAddr,
    /// Is called when a visitor with a right is there, so that the connection is no stranger's.
    pub welcome: Box<dyn Fn() + Send + Sync>,
    /// Turns true when the server stops.
    pub stopped: watch::Receiver<bool>,
}

/// A connection of a visitor.
pub(crate) struct Connection {
    pub(crate) peer: IpAddr,
    pub(crate) welcome: Box<dyn Fn() + Send + Sync>,
    /// Closes the connection at once.
    pub(crate) closing: Arc<Notify>,
    /// The WebSocket that the connection becomes.
    pub(crate) socket: Mutex<Option<Socket>>,
    pub(crate) wire: Arc<Wire>,
    requests: AtomicU64,
}

/// A request whose response was not sent.
pub(crate) struct Running(Arc<Connection>);

impl Running {
    pub(crate) fn begin(connection: &Arc<Connection>) -> Self {
        connection.requests.fetch_add(1, Ordering::Relaxed);
        connection.wire.begin();
        Self(Arc::clone(connection))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.wire.end();
    }
}

/// A WebSocket that the page has accepted.
pub(crate) struct Socket {
    pub(crate) visitor: OnUpgrade,
    pub(crate) page: OnUpgrade,
    pub(crate) held: Held,
    pub(crate) lease: Lease,
}

/// Takes the WebSocket of a connection at the end, also if that comes before the page's answer was sent. The
/// WebSocket refers to its connection, and would stay and count for ever.
struct Ending(Arc<Connection>);

impl Drop for Ending {
    fn drop(&mut self) {
        let socket = self.0.socket.lock().take();
        drop(socket);
    }
}

impl Socket {
    async fn serve(self) {
        let (Ok(visitor), Ok(page)) = tokio::join!(self.visitor, self.page) else {
            return;
        };
        // The queue of its requests takes more memory than the rest.
        drop(self.lease);
        let flow = &self.held.exchange().down;
        let passed = pass(TokioIo::new(visitor), TokioIo::new(page), || flow.touch(0)).await;
        if let Err(error) = passed {
            tracing::debug!("a WebSocket ended: {error}");
        }
    }
}

/// The settings of all connections.
pub(crate) fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_READ);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(u32::try_from(MAX_READ).unwrap_or(u32::MAX))
        .max_concurrent_streams(MAX_STREAMS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_frame_size(MAX_FRAME)
        .max_send_buf_size(MAX_SEND_BUFFER)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT);
    builder
}

impl Gateway {
    /// Serves a connection to its end, after its TLS handshake if there is one.
    pub async fn serve<I>(self: &Arc<Self>, io: I, accepted: AcceptedConnection)
    where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let AcceptedConnection {
            peer,
            welcome,
            mut stopped,
        } = accepted;
        let connection = Arc::new(Connection {
            peer,
            welcome,
            closing: Arc::default(),
            socket: Mutex::default(),
            wire: Wire::new(peer, &self.large_heads),
            requests: AtomicU64::default(),
        });
        let _ending = Ending(Arc::clone(&connection));
        if !self.serve_http(io, &connection, &mut stopped).await {
            return;
        }
        // The state of HTTP is gone here: a WebSocket needs no memory but its own.
        let socket = connection.socket.lock().take();
        if let Some(socket) = socket {
            tokio::select! {
                () = socket.serve() => {}
                () = connection.closing.notified() => {}
                _ = stopped.wait_for(|stopped| *stopped) => {}
            }
        }
    }

    /// Serves HTTP. False if the connection has to close at once.
    async fn serve_http<I>(
        self: &Arc<Self>,
        io: I,
        connection: &Arc<Connection>,
        stopped: &mut watch::Receiver<bool>,
    ) -> bool
    where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (gateway, of) = (Arc::clone(self), Arc::clone(connection));
        let service =
            service_fn(move |request| Arc::clone(&gateway).respond(request, Arc::clone(&of)));
        let wire = Arc::clone(&connection.wire);
        let http = self
            .builder
            .serve_connection_with_upgrades(TokioIo::new(Wired { io, wire }), service);
        let mut http = Box::pin(http);
        let mut look = interval_at(Instant::now() + LOOK_EVERY, LOOK_EVERY);
        let mut idle = Duration::ZERO;
        let (mut requests, mut is_stopping) = (0, false);
        loop {
            tokio::select! {
                biased;
                ended = http.as_mut() => {
                    if let Err(error) = ended {
                        tracing::debug!("a connection of a visitor ended: {error}");
                    }
                    return true;
                }
                () = connection.closing.notified() => return false,
                _ = stopped.wait_for(|stopped| *stopped), if !is_stopping => {
                    is_stopping = true;
                    look.reset_after(STOP);
                    http.as_mut().graceful_shutdown();
                }
                _ = look.tick() => {
                    if is_stopping {
                        return false;
                    }
                    let now = connection.requests.load(Ordering::Relaxed);
                    let is_busy = now != requests || connection.wire.is_busy();
                    requests = now;
                    idle = if is_busy { Duration::ZERO } else { idle + LOOK_EVERY };
                    let limit = if requests == 0 { FIRST_HEAD } else { IDLE };
                    if idle >= limit + FIRST_HEAD || requests == 0 && idle >= limit {
                        return false;
                    } else if idle >= limit {
                        http.as_mut().graceful_shutdown();
                    }
                }
            }
        }
    }
}

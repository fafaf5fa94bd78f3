//! Connections to the servers of pages. A connection is kept for a short time, for one client and an equal server of
//! that incarnation of the instance. The port may belong to another instance later.

use crate::body::Upload;
use crate::directory::{Directory, PageClient, Upstream};
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::AbortHandle;
use tokio::time::timeout;
use wharf_domain::ids::InstanceId;

/// Servers close idle connections after a second and later, so a kept one must be younger.
const IDLE: Duration = Duration::from_millis(750);

/// The connections that are kept for one instance.
const MAX_IDLE: usize = 32;

/// The time for a connection to a node.
const CONNECT: Duration = Duration::from_secs(5);

/// The largest head of a response, and the largest piece of a body in bytes.
const MAX_BUFFER: usize = 80 * 1024;
const MAX_HEADERS: usize = 200;

/// The connections that serve no exchange.
#[derive(Default)]
pub(crate) struct Pool {
    idle: Mutex<HashMap<InstanceId, Vec<Idle>>>,
}

struct Idle {
    connection: UpstreamConnection,
    since: Instant,
}

/// A connection to the server of a page. It closes when this is dropped.
pub(crate) struct UpstreamConnection {
    pub(crate) sender: SendRequest<Upload>,
    upstream: Upstream,
    client: PageClient,
    driver: AbortHandle,
}

impl UpstreamConnection {
    pub(crate) fn driver(&self) -> AbortHandle {
        self.driver.clone()
    }
}

impl Drop for UpstreamConnection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// A connection that serves an exchange.
pub(crate) struct Lease {
    pub(crate) connection: UpstreamConnection,
    pool: Arc<Pool>,
}

impl Lease {
    /// Keeps the connection for the next exchange.
    pub(crate) fn give_back(self) {
        if self.connection.sender.is_closed() {
            return;
        }
        let mut idle = self.pool.idle.lock();
        let of_instance = idle.entry(self.connection.upstream.instance).or_default();
        if of_instance.len() < MAX_IDLE {
            of_instance.push(Idle {
                connection: self.connection,
                since: Instant::now(),
            });
        }
    }
}

impl Pool {
    /// Takes a kept connection to a server, if the client has one.
    pub(crate) fn kept(
        self: &Arc<Self>,
        upstream: &Upstream,
        client: &PageClient,
    ) -> Option<Lease> {
        let now = Instant::now();
        let mut idle = self.idle.lock();
        let of_instance = idle.get_mut(&upstream.instance)?;
        // The youngest is the last.
        let at = of_instance.iter().rposition(|idle| {
            now - idle.since < IDLE
                && idle.connection.upstream == *upstream
                && idle.connection.client == *client
                && idle.connection.sender.is_ready()
        })?;
        Some(Lease {
            connection: of_instance.swap_remove(at).connection,
            pool: Arc::clone(self),
        })
    }

    /// Opens a connection to a server.
    pub(crate) async fn open(
        self: &Arc<Self>,
        directory: &dyn Directory,
        upstream: &Upstream,
        client: &PageClient,
    ) -> io::Result<Lease> {
        let stream = timeout(CONNECT, directory.connect(upstream, client)).await??;
        let mut builder = Builder::new();
        builder.max_headers(MAX_HEADERS).max_buf_size(MAX_BUFFER);
        let handshake = builder.handshake(TokioIo::new(stream)).await;
        let (sender, connection) = handshake.map_err(io::Error::other)?;
        let driver = tokio::spawn(async move {
            if let Err(error) = connection.with_upgrades().await {
                tracing::debug!("a connection to a page ended: {error}");
            }
        });
        Ok(Lease {
            connection: UpstreamConnection {
                sender,
                upstream: upstream.clone(),
                client: *client,
                driver: driver.abort_handle(),
            },
            pool: Arc::clone(self),
        })
    }

    /// Closes the connections that were kept long enough.
    pub(crate) fn close_old(&self) {
        let now = Instant::now();
        self.idle.lock().retain(|_, of_instance| {
            of_instance
                .retain(|idle| now - idle.since < IDLE && !idle.connection.sender.is_closed());
            !of_instance.is_empty()
        });
    }
}

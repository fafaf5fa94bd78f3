//! The accept loop: takes connections, bounded in number, until the server stops.

use super::activity::Activity;
use super::connection::HEADER_TIMEOUT;
use super::peers::Peers;
use arc_swap::ArcSwap;
use axum::serve::Listener;
use prometheus_client::metrics::gauge::Gauge;
use rustls::ServerConfig;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use wharf_config::{LimitsConfig, TrustedProxies};

/// The time for requests in progress to finish at shutdown. A stop, restart or resize answers before it ends.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(20);

/// Serves connections.
pub(super) trait ConnectionService: Send + Sync + 'static {
    /// Serves a connection to its end, gracefully when `stopped` turns true.
    fn serve<I>(
        &self,
        io: I,
        activity: &Arc<Activity>,
        stopped: watch::Receiver<bool>,
    ) -> impl Future<Output = ()> + Send
    where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static;
}

/// A service and the way it is reached.
pub(super) struct Served<S> {
    pub(super) service: S,
    pub(super) limits: LimitsConfig,
    /// The certificate, which a reload replaces.
    pub(super) tls: Option<Arc<ArcSwap<ServerConfig>>>,
    pub(super) proxies: Arc<TrustedProxies>,
    /// The number of open connections.
    pub(super) open: Gauge,
}

/// Serves until `stopped` turns true, then finishes running requests within [`SHUTDOWN_TIMEOUT`].
/// `address` is that of a peer whose connections are counted.
pub(super) async fn serve<L: Listener, S: ConnectionService>(
    mut listener: L,
    address: fn(&L::Addr) -> Option<IpAddr>,
    served: Served<S>,
    mut stopped: watch::Receiver<bool>,
) {
    let Served {
        service,
        limits,
        tls,
        proxies,
        open,
    } = served;
    let peers = Peers::new(&limits, proxies);
    let service = Arc::new(service);
    let max = limits.max_connections.min(Semaphore::MAX_PERMITS);
    let permits = Arc::new(Semaphore::new(max));
    loop {
        let accepted = async {
            let (io, peer) = listener.accept().await;
            (io, peer, permit(&permits, &peers).await)
        };
        let (io, peer, permit) = tokio::select! {
            accepted = accepted => accepted,
            _ = stopped.wait_for(|stopped| *stopped) => break,
        };
        let peer = address(&peer).map(|address| address.to_canonical());
        let activity = Arc::new(Activity::of(peer));
        let peer = peer.map(|address| (address, peers.connect(address, &activity)));
        if let Some((address, None)) = &peer {
            tracing::debug!(peer = %address, "connection closed: its peer has too many");
            continue;
        }
        let tls = tls.as_ref().map(|tls| TlsAcceptor::from(tls.load_full()));
        let (service, stopped) = (Arc::clone(&service), stopped.clone());
        let open = open.clone();
        tokio::spawn(async move {
            let _counted = (permit, peer, OpenGauge::new(open));
            let served = async {
                let Some(tls) = tls else {
                    return service.serve(io, &activity, stopped).await;
                };
                match tokio::time::timeout(HEADER_TIMEOUT, tls.accept(io)).await {
                    Ok(Ok(io)) => service.serve(io, &activity, stopped).await,
                    Ok(Err(error)) => tracing::debug!("TLS handshake failed: {error}"),
                    Err(_) => tracing::debug!("TLS handshake timed out"),
                }
            };
            tokio::select! {
                () = served => {}
                () = activity.evicted() => tracing::debug!("connection closed in favour of another"),
            }
        });
    }
    drop(listener);
    let all = u32::try_from(max).unwrap_or(u32::MAX);
    if tokio::time::timeout(SHUTDOWN_TIMEOUT, permits.acquire_many(all))
        .await
        .is_err()
    {
        tracing::warn!("requests were still running at the end of the shutdown timeout");
    }
}

/// A connection or stream, counted until it is dropped.
pub(super) struct OpenGauge(Gauge);

impl OpenGauge {
    pub(super) fn new(open: Gauge) -> Self {
        open.inc();
        Self(open)
    }
}

impl Drop for OpenGauge {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Waits for a free permit. If there is none, a connection without a valid key is closed first, so
/// that clients without a key cannot shut out others.
async fn permit(permits: &Arc<Semaphore>, peers: &Peers) -> Option<OwnedSemaphorePermit> {
    if permits.available_permits() == 0 {
        peers.evict_unauthenticated();
    }
    Arc::clone(permits).acquire_owned().await.ok()
}

#[cfg(test)]
mod tests;

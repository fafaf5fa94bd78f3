//! The listening side: accepts connections, bounded in number, until told to stop.

use super::connection::{self, Handle};
use super::idle::Connections;
use crate::config::Limits;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;

/// How long to wait when no connection can be accepted, such as for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until `stopped` turns true, and then until the running requests are done, within bounds.
pub(super) async fn serve<H: Handle>(
    listener: TcpListener,
    handler: Arc<H>,
    limits: &Limits,
    tls: Option<TlsAcceptor>,
    mut stopped: watch::Receiver<bool>,
) {
    let header_time = Duration::from_millis(limits.header_timeout_ms);
    let builder = Arc::new(connection::builder());
    let max = limits.max_connections.min(Semaphore::MAX_PERMITS);
    let places = Arc::new(Semaphore::new(max));
    let (connections, _watching) = Connections::watched(header_time, stopped.clone());
    loop {
        let accepted = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            accepted = accepted => accepted,
            _ = stopped.wait_for(|stopped| *stopped) => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!("cannot accept a connection: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        // Answers are written whole: waiting for more to send with them only costs time.
        let _ = stream.set_nodelay(true);
        let (handler, builder) = (Arc::clone(&handler), Arc::clone(&builder));
        let (tls, connections) = (tls.clone(), Arc::clone(&connections));
        tokio::spawn(async move {
            let _place = place;
            let Some(tls) = tls else {
                connection::serve(&builder, stream, handler, connections.add()).await;
                return;
            };
            match tokio::time::timeout(header_time, tls.accept(stream)).await {
                Ok(Ok(stream)) => {
                    connection::serve(&builder, stream, handler, connections.add()).await;
                }
                Ok(Err(error)) => tracing::debug!("no TLS: {error}"),
                Err(_) => tracing::debug!("no TLS in time"),
            }
        });
    }
    drop(listener);
    let all = u32::try_from(max).unwrap_or(u32::MAX);
    let bound = Duration::from_millis(limits.shutdown_timeout_ms);
    if tokio::time::timeout(bound, places.acquire_many(all))
        .await
        .is_err()
    {
        tracing::warn!("requests were still running when the time for shutdown was over");
    }
}

#[cfg(test)]
mod tests;

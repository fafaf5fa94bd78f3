//! Requests of proxies, counted by the network of their client. Clients share the connections of a proxy,
//! so a request counts as a connection of its client until its response is sent.

use super::client::client;
use super::interface::Interface;
use super::respond::{HttpError, Response};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::IntoResponse;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use std::collections::HashMap;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use wharf_config::Limits;

/// The requests in progress of each network behind a proxy.
#[derive(Debug)]
pub(super) struct Forwarded {
    running: Mutex<HashMap<IpAddr, usize>>,
    limit: usize,
}

impl Forwarded {
    pub(super) fn new(limits: &Limits) -> Arc<Self> {
        Arc::new(Self {
            running: Mutex::default(),
            limit: limits.connections_per_peer,
        })
    }

    /// Counts a request until it is dropped; none if its network has too many.
    fn begin(self: &Arc<Self>, network: IpAddr) -> Option<Counted> {
        let mut all = self.all();
        let running = all.entry(network).or_default();
        if *running >= self.limit {
            return None;
        }
        *running += 1;
        Some(Counted {
            forwarded: Arc::clone(self),
            network,
        })
    }

    fn all(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A counted request.
#[derive(Debug)]
struct Counted {
    forwarded: Arc<Forwarded>,
    network: IpAddr,
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut all = self.forwarded.all();
        if let Some(running) = all.get_mut(&self.network) {
            *running -= 1;
            if *running == 0 {
                all.remove(&self.network);
            }
        }
    }
}

/// A response body whose request is counted until the body is sent or given up.
struct CountedBody {
    body: Body,
    _counted: Counted,
}

impl HttpBody for CountedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Middleware of all routes. It refuses a request of a client with too many of them behind a proxy.
pub(super) async fn count(
    State(interface): State<Arc<Interface>>,
    request: Request,
    next: Next,
) -> Response {
    let client = client(request.extensions()).filter(|client| client.is_forwarded);
    let Some(client) = client else {
        return next.run(request).await;
    };
    match interface.forwarded.begin(client.network()) {
        Some(_counted) => {
            let response = next.run(request).await;
            response.map(|body| Body::new(CountedBody { body, _counted }))
        }
        None => HttpError::Busy.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Forwarded, Limits};

    #[test]
    fn each_network_has_its_own_limit() {
        let forwarded = Forwarded::new(&Limits {
            connections_per_peer: 2,
            ..Limits::default()
        });
        let begin = |network: &str| forwarded.begin(network.parse().unwrap());
        let held = [begin("192.0.2.1"), begin("192.0.2.1")];
        assert!(held.iter().all(Option::is_some) && begin("192.0.2.1").is_none());
        assert!(begin("192.0.2.2").is_some());
        drop(held);
        assert!(begin("192.0.2.1").is_some());
        assert!(forwarded.all().is_empty());
    }
}

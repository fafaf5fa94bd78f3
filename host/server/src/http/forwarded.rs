//! Requests of proxies, counted by the network of their client. Clients share the connections of a proxy,
//! so a request counts as a connection of its client until its response is sent.

use super::budget::{BudgetBounds, BudgetOwner};
use super::client::client;
use super::interface::Shared;
use super::respond::{HttpError, Response};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::IntoResponse;
use http_body_util::BodyExt;
use wharf_config::LimitsConfig;

/// The bounds on requests in progress of the networks behind proxies.
pub(super) fn bounds(limits: &LimitsConfig) -> BudgetBounds {
    BudgetBounds {
        network: limits.connections_per_peer as u64,
        ..BudgetBounds::NONE
    }
}

/// Middleware of all routes. It refuses a request of a client with too many of them behind a proxy.
pub(super) async fn count(State(interface): Shared, request: Request, next: Next) -> Response {
    let client = client(request.extensions()).filter(|client| client.is_forwarded);
    let Some(client) = client else {
        return next.run(request).await;
    };
    let network = BudgetOwner::Network(client.network());
    let Some(counted) = interface.forwarded.hold(network, 1) else {
        return HttpError::Busy.into_response();
    };
    let response = next.run(request).await;
    // The body owns the count, and is dropped when it is sent or given up.
    response.map(|body| {
        Body::new(body.map_err(move |error| {
            let _ = &counted;
            error
        }))
    })
}

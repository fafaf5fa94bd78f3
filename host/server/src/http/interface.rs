//! The state that handlers share.

use super::attempts::Attempts;
use super::budget::Budget;
use super::compress::Workers;
use super::docs::Docs;
use super::event_stream::Streams;
use super::metrics::HttpMetrics;
use super::pages::Pages;
use super::rate::CallerRates;
use super::unsent::Unsent;
use crate::api::Api;
use crate::oidc::Provider;
use axum::extract::State;
use prometheus_client::registry::Registry;
use std::sync::Arc;
use tokio::sync::{Semaphore, watch};

/// The argument by which a handler has the state.
pub(super) type Shared = State<Arc<Interface>>;

/// The state that handlers share.
pub(super) struct Interface {
    pub(super) api: Arc<Api>,
    pub(super) docs: Docs,
    /// A permit for each authenticated request that runs.
    pub(super) in_flight: Arc<Semaphore>,
    pub(super) rates: CallerRates,
    pub(super) attempts: Arc<Attempts>,
    /// Pages by name, if the configuration has them.
    pub(super) pages: Option<Pages>,
    pub(super) forwarded: Arc<Budget>,
    pub(super) provider: Provider,
    /// The memory of requests that wait for their bodies, and of bodies in use.
    pub(super) bodies: Arc<Budget>,
    pub(super) unsent: Arc<Unsent>,
    pub(super) workers: Workers,
    pub(super) streams: Streams,
    /// Turns true when the server stops.
    pub(super) stopped: watch::Receiver<bool>,
    pub(super) metrics: HttpMetrics,
    pub(super) registry: Registry,
}

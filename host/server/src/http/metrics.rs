//! `GET /metrics`: the figures in the text form of OpenMetrics, which Prometheus reads.

use super::extract::NoBody;
use super::interface::{Interface, Shared};
use super::respond::{self, Response};
use axum::Router;
use axum::extract::State;
use axum::routing::get;
use http::Method;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use std::sync::Arc;
use std::time::Duration;
use wharf_accounts::Accounts;
use wharf_domain::error::Error;
use wharf_instances::App;

/// The form of the response, with its version.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The upper ends of the buckets of durations, in seconds.
const BUCKETS: [f64; 14] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

/// Figures about requests. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct HttpMetrics {
    requests: Family<Request, Histogram, fn() -> Histogram>,
    pub(super) in_flight: Gauge,
    pub(super) connections: Gauge,
    pub(super) event_streams: Gauge,
    pub(super) page_connections: Gauge,
    certificates: Family<CertificateOf, Gauge>,
    pub(super) acme_failures: Gauge,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CertificateOf {
    listener: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    method: &'static str,
    /// The template of the path.
    route: String,
    status: u16,
}

impl Default for HttpMetrics {
    fn default() -> Self {
        let buckets: fn() -> Histogram = || Histogram::new(BUCKETS);
        Self {
            requests: Family::new_with_constructor(buckets),
            in_flight: Gauge::default(),
            connections: Gauge::default(),
            event_streams: Gauge::default(),
            page_connections: Gauge::default(),
            certificates: Family::default(),
            acme_failures: Gauge::default(),
        }
    }
}

impl HttpMetrics {
    /// Notes a request with its response.
    pub(super) fn answered(&self, method: &Method, route: &str, status: u16, after: Duration) {
        let request = Request {
            method: known(method),
            route: route.to_owned(),
            status,
        };
        let durations = self.requests.get_or_create(&request);
        durations.observe(after.as_secs_f64());
    }

    /// The end of the certificate of a listener.
    pub(super) fn certificate_of(&self, listener: &'static str) -> Gauge {
        let of = CertificateOf { listener };
        self.certificates.get_or_create_owned(&of)
    }

    fn register(&self, registry: &mut Registry) {
        registry.register_with_unit(
            "http_request_duration",
            "Time from a request to the head of its response, by method, route and status",
            Unit::Seconds,
            self.requests.clone(),
        );
        registry.register(
            "http_requests_in_flight",
            "Requests without a response yet",
            self.in_flight.clone(),
        );
        registry.register(
            "http_connections",
            "Open connections to the REST interface",
            self.connections.clone(),
        );
        registry.register(
            "page_connections",
            "Open connections to pages by name",
            self.page_connections.clone(),
        );
        registry.register_with_unit(
            "certificate_expiry_timestamp",
            "End of the certificate of a listener, in seconds since 1970",
            Unit::Seconds,
            self.certificates.clone(),
        );
        registry.register(
            "acme_failures",
            "Attempts to get a certificate for the pages that failed since the last one",
            self.acme_failures.clone(),
        );
        registry.register(
            "event_streams",
            "Open streams of events",
            self.event_streams.clone(),
        );
    }
}

/// The methods of clients are free text, so their number is bounded here.
fn known(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

/// Creates a registry with all figures.
pub(super) fn registry(http: &HttpMetrics, app: &App, accounts: &Accounts) -> Registry {
    let mut registry = Registry::with_prefix("wharf");
    http.register(&mut registry);
    app.register_metrics(&mut registry);
    accounts.register_metrics(&mut registry);
    registry
}

/// The service of the listener that needs no key.
pub(super) fn router(interface: Arc<Interface>) -> Router {
    Router::new()
        .route("/metrics", get(scrape))
        .fallback(async || respond::HttpError::UnknownPath)
        .with_state(interface)
}

/// The handler.
pub(super) async fn scrape(State(interface): Shared, _: NoBody) -> Response {
    let text = tokio::task::spawn_blocking(move || {
        interface.api.app().refresh_metrics()?;
        let mut text = String::new();
        encode(&mut text, &interface.registry)
            .map_err(|error| Error::caused("cannot write the metrics", error))?;
        Ok::<_, Error>(text)
    });
    let text = text.await;
    match text.unwrap_or_else(|error| Err(Error::caused("a scrape was aborted", error))) {
        Ok(text) => respond::document(CONTENT_TYPE, text.into()),
        Err(error) => {
            tracing::error!(error = %error.chain(), "metrics");
            respond::error(&error)
        }
    }
}

//! The layers around all routes: request ids, the access log, panics, and the `Host` header.

use super::client::client;
use super::metrics::HttpMetrics;
use super::respond::{self, HttpError, Response};
use axum::Router;
use axum::extract::{MatchedPath, Request};
use axum::middleware::{Next, from_fn};
use axum::response::IntoResponse;
use http::header::HOST;
use http::{HeaderName, HeaderValue, Method, Version};
use std::any::Any;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::request_id::{
    MakeRequestUuid, PropagateRequestIdLayer, RequestId, SetRequestIdLayer,
};
use tracing::Instrument;
use wharf_domain::ids::UserId;

/// Ties a response to its log lines.
pub(super) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The longest id accepted from a caller.
const MAX_ID_LENGTH: usize = 128;

/// Adds the layers to all routes of a router.
pub(super) fn observe<S: Clone + Send + Sync + 'static>(
    router: Router<S>,
    metrics: HttpMetrics,
) -> Router<S> {
    router.layer(
        ServiceBuilder::new()
            .map_request(drop_insane_id)
            .layer(SetRequestIdLayer::new(X_REQUEST_ID, MakeRequestUuid))
            .layer(PropagateRequestIdLayer::new(X_REQUEST_ID))
            .layer(from_fn(move |request, next| {
                log(request, next, metrics.clone())
            }))
            .layer(CatchPanicLayer::custom(panicked))
            .layer(from_fn(require_host)),
    )
}

/// The part of the log entry that later layers read and complete.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) request_id: Arc<str>,
    pub(super) user: Arc<OnceLock<UserId>>,
}

/// Removes the caller's id unless it is a single sane token, so that a new one is made.
fn drop_insane_id(mut request: Request) -> Request {
    let mut ids = request.headers().get_all(X_REQUEST_ID).iter();
    let sane = match (ids.next(), ids.next()) {
        (Some(id), None) => is_sane(id),
        (None, _) => true,
        _ => false,
    };
    if !sane {
        request.headers_mut().remove(X_REQUEST_ID);
    }
    request
}

fn is_sane(id: &HeaderValue) -> bool {
    let token = |b: &u8| b.is_ascii_alphanumeric() || b"-_.:+/=".contains(b);
    (1..=MAX_ID_LENGTH).contains(&id.len()) && id.as_bytes().iter().all(token)
}

async fn log(mut request: Request, next: Next, metrics: HttpMetrics) -> Response {
    metrics.in_flight.inc();
    let id = request.extensions().get::<RequestId>();
    let id = id.and_then(|id| id.header_value().to_str().ok());
    let entry = Entry {
        request_id: id.unwrap_or_default().into(),
        user: Arc::default(),
    };
    request.extensions_mut().insert(entry.clone());
    let line = AccessLog {
        started: Instant::now(),
        entry,
        method: request.method().clone(),
        route: request.extensions().get().cloned(),
        client: client(request.extensions()).map(|client| client.address),
        status: None,
        metrics,
    };
    // A span of this level exists whatever the filter, so that every line has the id.
    let span = tracing::error_span!(
        "request",
        request_id = &*line.entry.request_id,
        method = line.method.as_str(),
        route = line.route(),
    );
    let mut response = next.run(request).instrument(span).await;
    if let Some(user) = line.entry.user.get() {
        response.extensions_mut().insert(*user);
    }
    if let Some(Panicked(text)) = response.extensions().get() {
        let request_id = &*line.entry.request_id;
        tracing::error!(request_id, "a handler panicked: {text}");
    }
    line.write(response.status().as_u16());
    response
}

/// The access log line of a request. It is written with the response, or when the client disconnects,
/// although the request may still take effect.
struct AccessLog {
    started: Instant,
    entry: Entry,
    method: Method,
    route: Option<MatchedPath>,
    client: Option<IpAddr>,
    status: Option<u16>,
    metrics: HttpMetrics,
}

impl AccessLog {
    fn write(mut self, status: u16) {
        self.status = Some(status);
    }

    fn route(&self) -> &str {
        self.route.as_ref().map_or("-", MatchedPath::as_str)
    }
}

impl Drop for AccessLog {
    fn drop(&mut self) {
        let request_id = &*self.entry.request_id;
        let (method, route) = (self.method.as_str(), self.route());
        let elapsed = self.started.elapsed();
        self.metrics.in_flight.dec();
        // 499 is the customary number for a client that went away.
        let status = self.status.unwrap_or(499);
        (self.metrics).answered(&self.method, route, status, elapsed);
        let microseconds = (elapsed.as_secs_f64() * 1e6).round();
        let ms = microseconds / 1e3;
        let user = self.entry.user.get().map(|user| user.0);
        let client = self.client.map(tracing::field::display);
        match self.status {
            Some(status) => {
                tracing::info!(target: "wharf::request", request_id, method, route, status, ms, user, client);
            }
            None => tracing::info!(
                target: "wharf::request",
                request_id, method, route, ms, user, client,
                "the client went away before the response"
            ),
        }
    }
}

/// The message of a panic, in the extensions of its response.
#[derive(Debug, Clone)]
struct Panicked(String);

fn panicked(panic: Box<dyn Any + Send>) -> Response {
    let text = match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => match panic.downcast::<&str>() {
            Ok(text) => (*text).to_owned(),
            Err(_) => "unknown".to_owned(),
        },
    };
    let mut response = respond::internal_error();
    response.extensions_mut().insert(Panicked(text));
    response
}

/// The host must be unambiguous in HTTP/1.1; HTTP/2 has it in `:authority`.
async fn require_host(request: Request, next: Next) -> Response {
    let hosts = request.headers().get_all(HOST).iter().count();
    let right = match request.version() {
        Version::HTTP_11 => hosts == 1,
        _ => hosts <= 1,
    };
    if right {
        next.run(request).await
    } else {
        HttpError::Host.into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::{HttpMetrics, Response, X_REQUEST_ID, observe};
    use axum::Router;
    use axum::body::Body;
    use axum::routing::get;
    use http::Request;
    use http_body_util::BodyExt;
    use tower::Service;

    async fn send(headers: &[(&str, &str)]) -> Response {
        async fn fail() -> Response {
            panic!("on purpose")
        }
        let router = Router::new().route("/", get(fail));
        let mut request = Request::builder().uri("/").header("host", "x");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::empty()).unwrap();
        let Ok(response) = observe(router, HttpMetrics::default()).call(request).await;
        response
    }

    #[tokio::test]
    async fn a_panic_is_a_500_with_a_request_id() {
        let response = send(&[("x-request-id", "my-trace")]).await;
        assert_eq!(response.status(), 500);
        assert_eq!(response.headers()[X_REQUEST_ID], "my-trace");
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert!(!body["detail"].as_str().unwrap().contains("purpose"));
    }

    #[tokio::test]
    async fn sane_ids_are_kept() {
        async fn id(values: &[&str]) -> String {
            let headers: Vec<_> = values.iter().map(|v| ("x-request-id", *v)).collect();
            let response = send(&headers).await;
            let mut ids = response.headers().get_all(X_REQUEST_ID).iter();
            let id = ids.next().unwrap().to_str().unwrap().to_owned();
            assert!(ids.next().is_none());
            id
        }
        assert_eq!(id(&["abc-1"]).await, "abc-1");
        let long = "x".repeat(129);
        for insane in [&["a b"][..], &[""], &[&long], &["a", "b"], &["a\"b"], &[]] {
            let id = id(insane).await;
            assert!(
                id.len() >= 17 && !insane.contains(&id.as_str()),
                "{insane:?}"
            );
        }
        assert_ne!(id(&[]).await, id(&[]).await);
    }

    #[tokio::test]
    async fn one_host() {
        assert_eq!(send(&[("host", "y")]).await.status(), 400);
    }
}

//! A request on its way to an engine, and an observer of its answer.

use super::message::EngineError;
use super::registries::{Credentials, HEADER};
use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::Full;
use std::sync::Arc;

/// A checked request with its body.
#[derive(Debug, Clone)]
pub struct Outgoing {
    /// HTTP method.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// Headers, without those of the body.
    pub headers: Vec<(String, String)>,
    /// The account of the operator's at a registry.
    pub credentials: Option<Arc<Credentials>>,
    /// Body and its media type.
    pub body: Option<(&'static str, Bytes)>,
}

impl Outgoing {
    /// The request for an HTTP client. The client's connector ignores the URI's scheme.
    pub fn into_http(self, authority: &str) -> Result<Request<Full<Bytes>>, EngineError> {
        let mut request = Request::builder()
            .method(self.method)
            .uri(format!("http://{authority}{}", self.path));
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        if let Some(credentials) = &self.credentials {
            request = request.header(HEADER, credentials.header());
        }
        let body = self.body.map_or_else(Bytes::new, |(media_type, body)| {
            if let Some(headers) = request.headers_mut() {
                headers.insert(
                    header::CONTENT_TYPE,
                    header::HeaderValue::from_static(media_type),
                );
            }
            body
        });
        request
            .body(Full::new(body))
            .map_err(|_| EngineError::Refused("the request is not valid HTTP".into()))
    }
}

/// An observer of a long answer.
pub trait ProgressSink: Send + Sync {
    /// Takes the next piece.
    fn chunk(&self, bytes: &[u8]);
    /// The kept part of the answer.
    fn kept(&self) -> Bytes;
}

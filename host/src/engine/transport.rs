//! The ways to an engine. Each sends what the policy has passed.

use super::endpoint::Endpoint;
use super::message::{EngineError, Response};
use super::refill::Gauge;
use super::simulated::{SimulatedEngine, SimulatedError};
use super::unix::UnixTransport;
use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::Full;
use std::sync::Arc;

/// A request that was checked and whose body is built.
#[derive(Debug, Clone)]
pub struct Outgoing {
    /// HTTP method.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// Headers beyond the body's own.
    pub headers: Vec<(String, String)>,
    /// Body and its media type.
    pub body: Option<(&'static str, Bytes)>,
}

impl Outgoing {
    /// The same for an HTTP client. The authority is a constant: there is only one engine.
    pub fn into_http(self) -> Result<Request<Full<Bytes>>, EngineError> {
        let mut request = Request::builder()
            .method(self.method)
            .uri(format!("http://localhost{}", self.path));
        for (name, value) in &self.headers {
            request = request.header(name, value);
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

/// What looks at a long answer while it comes in.
pub trait Progress: Send + Sync {
    /// The next piece.
    fn chunk(&self, bytes: &[u8]);
    /// What was kept, for the end.
    fn kept(&self) -> Bytes;
}

/// A connection to one engine. An https endpoint with a client certificate will be one more.
#[derive(Debug, Clone)]
pub enum Transport {
    /// A unix socket.
    Unix(Arc<UnixTransport>),
    /// Inside this process.
    Simulated(Arc<SimulatedEngine>),
}

impl Transport {
    /// Opens the way to an endpoint. A socket need not be there yet.
    pub fn open(endpoint: &Endpoint, settings: &serde_json::Value) -> Result<Self, SimulatedError> {
        match endpoint {
            Endpoint::Unix(path) => Ok(Self::Unix(Arc::new(UnixTransport::new(path)))),
            Endpoint::Simulated(file) => Ok(Self::Simulated(Arc::new(SimulatedEngine::open(
                settings,
                file.as_deref(),
            )?))),
        }
    }

    /// How often contact was lost, as a restart of the engine does. The simulated one has a boot id
    /// instead.
    pub fn interruptions(&self) -> u64 {
        match self {
            Self::Unix(unix) => unix.interruptions(),
            Self::Simulated(_) => 0,
        }
    }

    /// Sends a request and reads the whole answer.
    pub async fn send(&self, outgoing: Outgoing) -> Result<Response, EngineError> {
        match self {
            Self::Unix(unix) => unix.send(outgoing).await,
            Self::Simulated(engine) => engine.send(&outgoing).await,
        }
    }

    /// Sends the archive that answers one request as the body of another.
    pub async fn pipe(
        &self,
        from: Outgoing,
        to: Outgoing,
        gone: &[String],
        gauge: Arc<Gauge>,
        progress: Arc<dyn Progress>,
    ) -> Result<Response, EngineError> {
        match self {
            Self::Unix(unix) => unix.pipe(from, to, gone, gauge, progress).await,
            Self::Simulated(_) => Err(EngineError::Refused(
                "the simulated engine has no archives".into(),
            )),
        }
    }

    /// Sends a request whose answer is long and of which only the end matters.
    pub async fn stream(
        &self,
        outgoing: Outgoing,
        progress: &dyn Progress,
    ) -> Result<Response, EngineError> {
        match self {
            Self::Unix(unix) => unix.stream(outgoing, progress).await,
            Self::Simulated(engine) => {
                let answer = engine.send(&outgoing).await?;
                progress.chunk(&answer.body);
                Ok(Response {
                    body: progress.kept(),
                    ..answer
                })
            }
        }
    }
}

//! The transports to an engine. They send requests that the policy has checked.

use super::endpoint::Endpoint;
use super::message::{EngineError, Response};
use super::simulated::{SimulatedEngine, SimulatedError};
use super::tar_pipe::TransferProgress;
use super::unix::UnixTransport;
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
    /// Body and its media type.
    pub body: Option<(&'static str, Bytes)>,
}

impl Outgoing {
    /// The request for an HTTP client. The authority is a constant, as there is one engine.
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

/// An observer of a long answer.
pub trait Progress: Send + Sync {
    /// Takes the next piece.
    fn chunk(&self, bytes: &[u8]);
    /// The kept part of the answer.
    fn kept(&self) -> Bytes;
}

/// The transport to one engine.
#[derive(Debug, Clone)]
pub enum Transport {
    /// Over a unix socket.
    Unix(Arc<UnixTransport>),
    /// Within this process.
    Simulated(Arc<SimulatedEngine>),
}

impl Transport {
    /// The transport to an endpoint. A socket need not exist yet.
    pub fn open(endpoint: &Endpoint, settings: &serde_json::Value) -> Result<Self, SimulatedError> {
        match endpoint {
            Endpoint::Unix(path) => Ok(Self::Unix(Arc::new(UnixTransport::new(path)))),
            Endpoint::Simulated(file) => Ok(Self::Simulated(Arc::new(SimulatedEngine::open(
                settings,
                file.as_deref(),
            )?))),
        }
    }

    /// How often contact was lost, which shows restarts of the engine. The simulated engine has a boot
    /// id instead.
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
        transferred: Arc<TransferProgress>,
        progress: Arc<dyn Progress>,
    ) -> Result<Response, EngineError> {
        match self {
            Self::Unix(unix) => unix.pipe(from, to, gone, transferred, progress).await,
            Self::Simulated(_) => Err(EngineError::Refused(
                "the simulated engine has no archives".into(),
            )),
        }
    }

    /// Sends a request with a long answer; `progress` sees and keeps parts of it.
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

//! HTTP over a unix socket, on kept connections.

use super::message::{EngineError, MAX_RESPONSE, Response};
use super::transport::{Outgoing, Progress};
use bytes::{Bytes, BytesMut};
use http::Uri;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::client::legacy::{Client, Error as ClientError};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::error::Error;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;

/// Kept connections that are not in use; engines answer from one connection one at a time.
const IDLE_CONNECTIONS: usize = 16;
/// How long an unused connection is kept.
const IDLE_TIME: Duration = Duration::from_secs(30);
/// Headers of an answer that are passed on.
const MAX_HEADERS: usize = 64;

/// One engine behind one socket.
#[derive(Debug, Clone)]
pub struct UnixTransport {
    client: Client<Connector, Full<Bytes>>,
}

impl UnixTransport {
    /// Makes the client; connects when first asked.
    pub fn new(socket: &Path) -> Self {
        let client = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE_TIME)
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .pool_timer(hyper_util::rt::TokioTimer::new())
            .build(Connector::from(socket));
        Self { client }
    }

    /// Sends a request and reads the whole answer.
    pub async fn send(&self, outgoing: Outgoing) -> Result<Response, EngineError> {
        let (status, headers, mut body) = self.open(outgoing).await?;
        let mut whole = BytesMut::new();
        while let Some(chunk) = next(&mut body).await? {
            if whole.len().saturating_add(chunk.len()) > MAX_RESPONSE {
                return Err(EngineError::TooLarge(MAX_RESPONSE as u64));
            }
            whole.extend_from_slice(&chunk);
        }
        Ok(Response {
            status,
            headers,
            body: whole.freeze(),
        })
    }

    /// Sends a request and hands each piece of the answer to `progress`, which keeps what it wants.
    pub async fn stream(
        &self,
        outgoing: Outgoing,
        progress: &dyn Progress,
    ) -> Result<Response, EngineError> {
        let (status, headers, mut body) = self.open(outgoing).await?;
        while let Some(chunk) = next(&mut body).await? {
            progress.chunk(&chunk);
        }
        Ok(Response {
            status,
            headers,
            body: progress.kept(),
        })
    }

    async fn open(&self, outgoing: Outgoing) -> Result<Opened, EngineError> {
        let request = outgoing.into_http()?;
        let answer = self
            .client
            .request(request)
            .await
            .map_err(|error| unreachable(&error))?;
        let (parts, body) = answer.into_parts();
        let headers = parts
            .headers
            .iter()
            .take(MAX_HEADERS)
            .filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())))
            .collect();
        Ok((parts.status.as_u16(), headers, body))
    }
}

type Opened = (u16, Vec<(String, String)>, Incoming);

async fn next(body: &mut Incoming) -> Result<Option<Bytes>, EngineError> {
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| {
            EngineError::Unreachable("the connection broke within the answer".into())
        })?;
        if let Ok(data) = frame.into_data() {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

/// Says what happened without the host's paths: the text reaches the guest.
fn unreachable(error: &ClientError) -> EngineError {
    let mut source = error.source();
    let mut kind = None;
    while let Some(inner) = source {
        kind = inner
            .downcast_ref::<io::Error>()
            .map(io::Error::kind)
            .or(kind);
        source = inner.source();
    }
    let what = if error.is_connect() {
        "cannot connect"
    } else {
        "the connection broke"
    };
    EngineError::Unreachable(kind.map_or_else(|| what.to_owned(), |kind| format!("{what}: {kind}")))
}

/// Ignores the URI: there is one place to connect to.
#[derive(Debug, Clone)]
struct Connector(Arc<PathBuf>);

impl From<&Path> for Connector {
    fn from(path: &Path) -> Self {
        Self(Arc::new(path.to_owned()))
    }
}

impl tower_service::Service<Uri> for Connector {
    type Response = TokioIo<EngineStream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let path = Arc::clone(&self.0);
        Box::pin(async move {
            Ok(TokioIo::new(EngineStream(
                UnixStream::connect(path.as_path()).await?,
            )))
        })
    }
}

/// A unix stream that the client's pool takes.
#[derive(Debug)]
struct EngineStream(UnixStream);

impl Connection for EngineStream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for EngineStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for EngineStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

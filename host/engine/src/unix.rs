//! HTTP over a unix socket, with a pool of connections.

use super::contact::{Contact, OpenConnection};
use super::message::{EngineError, MAX_RESPONSE, Response};
use super::outgoing::{Outgoing, Progress};
use super::tar_pipe::{TarPipe, TransferProgress};
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
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;

/// Most idle connections. An engine answers the requests of one connection one after another.
const IDLE_CONNECTIONS: usize = 16;
/// How long an idle connection is kept.
const IDLE_TIME: Duration = Duration::from_secs(30);
/// Most headers of an answer.
const MAX_HEADERS: usize = 64;

/// The engine behind one socket.
#[derive(Debug, Clone)]
pub struct UnixTransport {
    client: Client<Connector, Full<Bytes>>,
    pipes: Client<Connector, TarPipe>,
    contact: Arc<Contact>,
}

impl UnixTransport {
    /// Makes the client. It connects with the first request.
    pub fn new(socket: &Path) -> Self {
        let contact = Arc::new(Contact::default());
        let connector = Connector::new(socket, &contact);
        let client = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE_TIME)
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .pool_timer(hyper_util::rt::TokioTimer::new())
            .build(connector.clone());
        // Transfers are rare and long, and a failed one leaves its connection unusable.
        let pipes = Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(0)
            .build(connector);
        Self {
            client,
            pipes,
            contact,
        }
    }

    /// How often the engine has ended all connections, as a restart does.
    pub fn interruptions(&self) -> u64 {
        self.contact.interruptions()
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

    /// Sends a request and passes each piece of the answer to `progress`.
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

    /// Sends the archive of one answer as the body of another request. If the first request fails, its
    /// answer is the result.
    pub async fn pipe(
        &self,
        from: Outgoing,
        to: Outgoing,
        gone: &[String],
        transferred: Arc<TransferProgress>,
        progress: Arc<dyn Progress>,
    ) -> Result<Response, EngineError> {
        let (status, headers, source) = self.open(from).await?;
        if !(200..300).contains(&status) {
            return ended(status, headers, source).await;
        }
        let body = TarPipe::new(source, gone, transferred, progress)
            .map_err(|malformed| EngineError::Unreachable(malformed.to_string()))?;
        let request = to.into_http()?.map(|_| body);
        let answer = self.pipes.request(request).await;
        let (status, headers, body) = opened(answer.map_err(|error| unreachable(&error))?);
        ended(status, headers, body).await
    }

    async fn open(&self, outgoing: Outgoing) -> Result<Opened, EngineError> {
        let answer = self.client.request(outgoing.into_http()?).await;
        answer.map(opened).map_err(|error| unreachable(&error))
    }
}

/// Reads a short answer and keeps at most [`MAX_RESPONSE`] bytes.
async fn ended(
    status: u16,
    headers: Vec<(String, String)>,
    mut body: Incoming,
) -> Result<Response, EngineError> {
    let mut whole = BytesMut::new();
    while let Some(chunk) = next(&mut body).await? {
        if whole.len().saturating_add(chunk.len()) > MAX_RESPONSE {
            break;
        }
        whole.extend_from_slice(&chunk);
    }
    Ok(Response {
        status,
        headers,
        body: whole.freeze(),
    })
}

fn opened(answer: http::Response<Incoming>) -> Opened {
    let (parts, body) = answer.into_parts();
    let headers = parts
        .headers
        .iter()
        .take(MAX_HEADERS)
        .filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())))
        .collect();
    (parts.status.as_u16(), headers, body)
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

/// Describes the error without paths of this machine, as the guest sees the text.
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

/// Connects to the socket, whatever the URI.
#[derive(Debug, Clone)]
struct Connector {
    socket: Arc<PathBuf>,
    contact: Arc<Contact>,
}

impl Connector {
    fn new(socket: &Path, contact: &Arc<Contact>) -> Self {
        Self {
            socket: Arc::new(socket.to_owned()),
            contact: Arc::clone(contact),
        }
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
        let (path, contact) = (Arc::clone(&self.socket), Arc::clone(&self.contact));
        Box::pin(async move {
            let stream = UnixStream::connect(path.as_path()).await?;
            Ok(TokioIo::new(EngineStream {
                stream,
                connection: contact.connection(),
            }))
        })
    }
}

/// A unix stream for the client's pool.
#[derive(Debug)]
struct EngineStream {
    stream: UnixStream,
    connection: OpenConnection,
}

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
        let (before, room) = (buf.filled().len(), buf.remaining());
        let read = ready!(Pin::new(&mut self.stream).poll_read(cx, buf));
        if read.is_err() || (room > 0 && buf.filled().len() == before) {
            self.connection.ended_by_peer();
        }
        Poll::Ready(read)
    }
}

impl AsyncWrite for EngineStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, buf));
        if written.is_err() {
            self.connection.ended_by_peer();
        }
        Poll::Ready(written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

//! The client. One connection per request is fast enough on one machine.

use super::{Body, Endpoint, Request, Response};
use anyhow::{Context, Result, anyhow};
use bytes::Bytes;
use http_body_util::channel::{Channel, Sender};
use http_body_util::{BodyExt, Either, Empty, Full};
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper_util::rt::TokioIo;
use std::path::Path;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio_rustls::TlsConnector;

type Outgoing = Either<Either<Empty<Bytes>, Full<Bytes>>, Channel<Bytes, std::io::Error>>;

/// Bytes read from a file at a time.
const CHUNK: usize = 256 * 1024;

/// Sends requests to one [`Endpoint`].
#[derive(Debug, Clone)]
pub struct Client {
    endpoint: Endpoint,
}

impl Client {
    /// A client of `endpoint`; each request connects.
    pub fn new(endpoint: Endpoint) -> Self {
        Self { endpoint }
    }

    /// The endpoint of the server.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Sends a request and reads the whole response, whatever its status.
    pub fn send(&self, request: Request<'_>) -> Result<Response> {
        let mut body = Vec::new();
        let status = self.stream(request, |chunk| {
            body.extend_from_slice(chunk);
            Ok(())
        })?;
        Ok(Response { status, body })
    }

    /// Sends a `GET` and returns the JSON of its response; fails unless the status is 2xx.
    pub fn get(&self, path: &str) -> Result<serde_json::Value> {
        let response = self.send(Request::new("GET", path))?;
        response.ok().with_context(|| format!("GET {path}"))?.json()
    }

    /// Sends a request, passes each chunk of the response to `each`, and returns the status.
    pub fn stream(
        &self,
        request: Request<'_>,
        each: impl FnMut(&[u8]) -> Result<()> + Send,
    ) -> Result<u16> {
        let what = format!("{} {} at {}", request.method, request.path, self.endpoint);
        // A thread of its own, because the caller may be inside a runtime.
        let exchange = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()?;
                let limit = request.timeout;
                runtime.block_on(async {
                    tokio::time::timeout(limit, exchange(&self.endpoint, request, each))
                        .await
                        .map_err(|_| anyhow!("no complete response within {limit:?}"))?
                })
            });
            thread
                .join()
                .unwrap_or_else(|_| Err(anyhow!("the exchange panicked")))
        });
        exchange.context(what)
    }
}

async fn exchange(
    endpoint: &Endpoint,
    request: Request<'_>,
    each: impl FnMut(&[u8]) -> Result<()>,
) -> Result<u16> {
    match endpoint {
        Endpoint::Unix(path) => {
            let stream = tokio::net::UnixStream::connect(path).await?;
            converse(stream, endpoint, request, each).await
        }
        Endpoint::Tcp(address) => {
            let stream = tokio::net::TcpStream::connect(address.as_str()).await?;
            converse(stream, endpoint, request, each).await
        }
        Endpoint::Tls {
            address,
            server_name,
            config,
        } => {
            let tcp = tokio::net::TcpStream::connect(address.as_str()).await?;
            let connector = TlsConnector::from(Arc::clone(config));
            let stream = connector.connect(server_name.clone(), tcp).await?;
            converse(stream, endpoint, request, each).await
        }
    }
}

async fn converse<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    endpoint: &Endpoint,
    request: Request<'_>,
    mut each: impl FnMut(&[u8]) -> Result<()>,
) -> Result<u16> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let driver = tokio::spawn(connection);
    let mut head = hyper::Request::builder()
        .method(request.method)
        .uri(request.path)
        .header(HOST, endpoint.authority());
    if let Some(kind) = content_type(&request.body) {
        head = head.header(CONTENT_TYPE, kind);
    }
    if let Some(key) = request.key {
        head = head.header(AUTHORIZATION, format!("Bearer {key}"));
    }
    let response = sender
        .send_request(head.body(outgoing(request.body)?)?)
        .await?;
    let status = response.status().as_u16();
    let mut body = response.into_body();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            each(&data)?;
        }
    }
    driver.abort();
    Ok(status)
}

fn content_type(body: &Body) -> Option<&'static str> {
    match body {
        Body::Empty => None,
        Body::Json(_) => Some("application/json"),
        Body::Tar(_) | Body::TarFile(_) => Some("application/x-tar"),
    }
}

fn outgoing(body: Body) -> Result<Outgoing> {
    Ok(match body {
        Body::Empty => Either::Left(Either::Left(Empty::new())),
        Body::Json(value) => full(serde_json::to_vec(&value)?),
        Body::Tar(bytes) => full(bytes),
        Body::TarFile(path) => {
            let (sender, channel) = Channel::new(2);
            tokio::spawn(async move { send_file(&path, sender).await });
            Either::Right(channel)
        }
    })
}

fn full(bytes: Vec<u8>) -> Outgoing {
    Either::Left(Either::Right(Full::new(Bytes::from(bytes))))
}

async fn send_file(path: &Path, mut sender: Sender<Bytes, std::io::Error>) {
    let result = async {
        let mut file = tokio::fs::File::open(path).await?;
        loop {
            let mut chunk = Vec::with_capacity(CHUNK);
            if (&mut file)
                .take(CHUNK as u64)
                .read_to_end(&mut chunk)
                .await?
                == 0
            {
                return Ok(());
            }
            // The server has closed the connection; its response says why.
            if sender.send_data(Bytes::from(chunk)).await.is_err() {
                return Ok(());
            }
        }
    };
    if let Err(error) = result.await {
        sender.abort(error);
    }
}

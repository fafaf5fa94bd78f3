//! HTTP to an engine, with a pool of connections.

use super::connect::{Connector, EngineAddress};
use super::contact::Contact;
use super::message::{EngineError, EngineResponse, MAX_RESPONSE};
use super::objects::{ObjectTarget, Piece};
use super::outgoing::{Outgoing, ProgressSink};
use super::tar_pipe::{Archive, TarPipe, TransferProgress};
use super::tar_stream::{Rewrite, TarStream};
use super::tls::{self, ClientTls};
use arc_swap::ArcSwap;
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::{Client, Error as ClientError};
use hyper_util::rt::TokioExecutor;
use rustls::ClientConfig;
use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use wharf_domain::error::causes;

/// Most idle connections. An engine answers the requests of one connection one after another.
const IDLE_CONNECTIONS: usize = 16;
/// How long an idle connection is kept.
const IDLE_TIME: Duration = Duration::from_secs(30);
/// Most headers of an answer.
const MAX_HEADERS: usize = 64;

/// The engine at one address.
#[derive(Debug, Clone)]
pub struct HttpTransport {
    authority: Arc<str>,
    client: Client<Connector, Full<Bytes>>,
    pipes: Client<Connector, TarPipe>,
    contact: Arc<Contact>,
    tls: Option<Arc<ArcSwap<ClientConfig>>>,
}

impl HttpTransport {
    /// Makes the client. It connects with the first request.
    pub(super) fn new(address: EngineAddress) -> Self {
        let contact = Arc::new(Contact::default());
        let authority = address.authority().into();
        let tls = match &address {
            EngineAddress::Unix(_) => None,
            EngineAddress::Tls { config, .. } => Some(Arc::clone(config)),
        };
        let connector = Connector::new(address, &contact);
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
            authority,
            client,
            pipes,
            contact,
            tls,
        }
    }

    /// Replaces the certificates of connections that begin from now on.
    pub(super) fn renew(&self, tls: ClientTls) {
        if let Some(config) = &self.tls {
            config.store(tls);
        }
    }

    /// How often the engine has ended all connections, as a restart does.
    pub fn interruptions(&self) -> u64 {
        self.contact.interruptions()
    }

    /// Sends a request and reads the whole answer.
    pub async fn send(&self, outgoing: Outgoing) -> Result<EngineResponse, EngineError> {
        let (status, headers, mut body) = self.open(outgoing).await?;
        let mut whole = BytesMut::new();
        while let Some(chunk) = next(&mut body).await? {
            if whole.len().saturating_add(chunk.len()) > MAX_RESPONSE {
                return Err(EngineError::TooLarge(MAX_RESPONSE as u64));
            }
            whole.extend_from_slice(&chunk);
        }
        Ok(EngineResponse {
            status,
            headers,
            body: whole.freeze(),
        })
    }

    /// Sends a request and passes each piece of the answer to `progress`.
    pub async fn stream(
        &self,
        outgoing: Outgoing,
        progress: &dyn ProgressSink,
    ) -> Result<EngineResponse, EngineError> {
        let (status, headers, mut body) = self.open(outgoing).await?;
        while let Some(chunk) = next(&mut body).await? {
            progress.chunk(&chunk);
        }
        Ok(EngineResponse {
            status,
            headers,
            body: progress.kept(),
        })
    }

    /// Sends the archive of one answer as the body of another request, to the engine `target`. If the first request
    /// fails, its answer is the result.
    pub async fn pipe(
        &self,
        from: Outgoing,
        target: &Self,
        to: Outgoing,
        rewrite: &Rewrite,
        transferred: Arc<TransferProgress>,
    ) -> Result<EngineResponse, EngineError> {
        let (status, headers, source) = self.open(from).await?;
        if !(200..300).contains(&status) {
            return ended(status, headers, source).await;
        }
        let source = Archive::Engine(source);
        target.fill(source, to, rewrite, transferred).await
    }

    /// Sends an archive as the body of a request.
    pub async fn fill(
        &self,
        source: Archive,
        to: Outgoing,
        rewrite: &Rewrite,
        transferred: Arc<TransferProgress>,
    ) -> Result<EngineResponse, EngineError> {
        let body = TarPipe::new(source, rewrite, transferred)
            .map_err(|malformed| EngineError::Unreachable(malformed.to_string()))?;
        let request = to.into_http(&self.authority)?.map(|_| body);
        let answer = self.pipes.request(request).await;
        let (status, headers, body) = opened(answer.map_err(|error| unreachable(&error))?);
        ended(status, headers, body).await
    }

    /// Sends the archive of an answer to an object, unchanged but for its root. It must be one that [`Self::fill`] can
    /// send.
    pub async fn drain(
        &self,
        from: Outgoing,
        to: &ObjectTarget,
        rewrite: &Rewrite,
        transferred: &TransferProgress,
    ) -> Result<EngineResponse, EngineError> {
        let (status, headers, mut source) = self.open(from).await?;
        if !(200..300).contains(&status) {
            return ended(status, headers, source).await;
        }
        let broke = |malformed| EngineError::Unreachable(transferred.broke(malformed).to_string());
        let mut rewritten = Vec::new();
        let mut stream = TarStream::begin(rewrite, &mut rewritten).map_err(broke)?;
        while let Some(data) = next(&mut source).await? {
            rewritten.clear();
            stream.push(&data, &mut rewritten).map_err(broke)?;
            let length = data.len();
            let sent = if rewrite.root.is_some() {
                std::mem::take(&mut rewritten).into()
            } else {
                data
            };
            to.put(Piece::Data(sent)).await?;
            transferred.read(length, stream.is_whole());
        }
        let lacking = stream.lacking().map(str::to_owned).collect();
        to.put(Piece::Gone(lacking)).await?;
        Ok(EngineResponse {
            status,
            headers,
            body: Bytes::new(),
        })
    }

    async fn open(&self, outgoing: Outgoing) -> Result<Opened, EngineError> {
        let answer = self
            .client
            .request(outgoing.into_http(&self.authority)?)
            .await;
        answer.map(opened).map_err(|error| unreachable(&error))
    }
}

/// Reads a short answer and keeps at most [`MAX_RESPONSE`] bytes.
async fn ended(
    status: u16,
    headers: Vec<(String, String)>,
    mut body: Incoming,
) -> Result<EngineResponse, EngineError> {
    let mut whole = BytesMut::new();
    while let Some(chunk) = next(&mut body).await? {
        if whole.len().saturating_add(chunk.len()) > MAX_RESPONSE {
            break;
        }
        whole.extend_from_slice(&chunk);
    }
    Ok(EngineResponse {
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
    let (mut kind, mut tls) = (None, None);
    for io in causes(error).filter_map(<dyn Error>::downcast_ref::<io::Error>) {
        kind = Some(io.kind());
        tls = tls.or_else(|| tls::explain(io));
    }
    let what = if error.is_connect() {
        "cannot connect"
    } else {
        "the connection broke"
    };
    let why = tls.or_else(|| kind.map(|kind| kind.to_string()));
    EngineError::Unreachable(why.map_or_else(|| what.to_owned(), |why| format!("{what}: {why}")))
}

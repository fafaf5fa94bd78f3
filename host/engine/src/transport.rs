//! The transports to an engine. They send requests that the host has written.

use super::client::HttpTransport;
use super::connect::EngineAddress;
use super::message::{EngineError, EngineResponse};
use super::objects::{ObjectSource, ObjectTarget, Piece};
use super::outgoing::{Outgoing, ProgressSink};
use super::tar_pipe::{Archive, TransferProgress};
use super::tar_stream::Rewrite;
use super::tls::ClientTls;
use arc_swap::ArcSwap;
use bytes::Bytes;
use parking_lot::Mutex;
use rustls_pki_types::ServerName;
use std::fmt::Debug;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

/// The media type of an archive.
const TAR: &str = "application/x-tar";
/// The answer of an engine inside this process that tells nothing.
const NOTHING: &[u8] = b"null";

/// An engine that lives inside this process, such as the simulated one.
pub trait InProcessEngine: Debug + Send + Sync {
    /// Answers one request.
    fn send<'a>(
        &'a self,
        outgoing: &'a Outgoing,
    ) -> Pin<Box<dyn Future<Output = Result<EngineResponse, EngineError>> + Send + 'a>>;
}

/// A connection to one engine.
#[derive(Debug, Clone)]
pub struct Transport {
    link: Link,
    /// The time of the last answer. None if a later request found the engine out of reach.
    answered: Arc<Mutex<Option<Instant>>>,
}

#[derive(Debug, Clone)]
enum Link {
    /// HTTP over a unix socket or TLS.
    Http(Arc<HttpTransport>),
    /// An engine inside this process.
    InProcess(Arc<dyn InProcessEngine>),
}

impl Transport {
    /// A transport to the engine that listens on a Unix socket. The socket need not exist yet.
    pub fn unix(socket: &Path) -> Self {
        Self::http(EngineAddress::Unix(socket.to_owned()))
    }

    /// A transport to the engine at a TCP port. It connects with the first request.
    pub fn tls(host: String, port: u16, server_name: ServerName<'static>, tls: ClientTls) -> Self {
        Self::http(EngineAddress::Tls {
            host,
            port,
            server_name,
            config: Arc::new(ArcSwap::new(tls)),
        })
    }

    /// A transport to an engine inside this process.
    pub fn in_process(engine: impl InProcessEngine + 'static) -> Self {
        Self::over(Link::InProcess(Arc::new(engine)))
    }

    fn http(address: EngineAddress) -> Self {
        Self::over(Link::Http(Arc::new(HttpTransport::new(address))))
    }

    fn over(link: Link) -> Self {
        Self {
            link,
            answered: Arc::default(),
        }
    }

    /// Whether the engine is inside this process.
    pub fn is_in_process(&self) -> bool {
        matches!(self.link, Link::InProcess(_))
    }

    /// The time of the engine's last answer to any request. None if a later request found it out of
    /// reach.
    pub fn last_answer(&self) -> Option<Instant> {
        *self.answered.lock()
    }

    fn note(&self, answer: &Result<EngineResponse, EngineError>) {
        let last = match answer {
            Ok(_) => Some(Instant::now()),
            Err(EngineError::Unreachable(_)) => None,
            Err(_) => return,
        };
        *self.answered.lock() = last;
    }

    /// Replaces the certificates of an engine behind TLS. Open connections keep the earlier ones.
    pub fn renew(&self, tls: ClientTls) {
        if let Link::Http(http) = &self.link {
            http.renew(tls);
        }
    }

    /// The number of times that contact was lost, as a restart of the engine does. Contact with an
    /// engine in this process cannot be lost.
    pub fn interruptions(&self) -> u64 {
        match &self.link {
            Link::Http(http) => http.interruptions(),
            Link::InProcess(_) => 0,
        }
    }

    /// Sends a request and reads the whole answer.
    pub async fn send(&self, outgoing: Outgoing) -> Result<EngineResponse, EngineError> {
        let answer = match &self.link {
            Link::Http(http) => http.send(outgoing).await,
            Link::InProcess(engine) => engine.send(&outgoing).await,
        };
        self.note(&answer);
        answer
    }

    /// Sends the archive that answers one request as the body of another, to this engine or to that of another node.
    pub async fn pipe(
        &self,
        from: Outgoing,
        target: &Self,
        to: Outgoing,
        rewrite: &Rewrite,
        transferred: Arc<TransferProgress>,
    ) -> Result<EngineResponse, EngineError> {
        match (&self.link, &target.link) {
            (Link::Http(own), Link::Http(other)) => {
                own.pipe(from, other, to, rewrite, transferred).await
            }
            // The archives of a simulated engine are short, and need no change.
            (Link::InProcess(_), Link::InProcess(_)) => {
                let archive = self.send(from).await?;
                if !archive.is_success() {
                    return Ok(archive);
                }
                transferred.read(archive.body.len(), true);
                let body = Some((TAR, archive.body));
                target.send(Outgoing { body, ..to }).await
            }
            _ => Err(EngineError::Refused(
                "an engine in this process and one outside".into(),
            )),
        }
    }

    /// Sends the content of an object as the body of a request.
    pub async fn fill(
        &self,
        mut from: ObjectSource,
        to: Outgoing,
        rewrite: &Rewrite,
        transferred: Arc<TransferProgress>,
    ) -> Result<EngineResponse, EngineError> {
        match &self.link {
            Link::Http(own) => {
                own.fill(Archive::Object(from), to, rewrite, transferred)
                    .await
            }
            Link::InProcess(_) => {
                let content = from.read().await;
                let content = content.map_err(|e| EngineError::Unreachable(e.to_string()))?;
                transferred.read(content.len(), true);
                let body = Some((TAR, content));
                self.send(Outgoing { body, ..to }).await
            }
        }
    }

    /// Sends the archive that answers a request to an object.
    pub async fn drain(
        &self,
        from: Outgoing,
        to: &ObjectTarget,
        rewrite: &Rewrite,
        transferred: &TransferProgress,
    ) -> Result<EngineResponse, EngineError> {
        match &self.link {
            Link::Http(own) => own.drain(from, to, rewrite, transferred).await,
            Link::InProcess(_) => {
                let mut answer = self.send(from).await?;
                if answer.is_success() {
                    let content = std::mem::replace(&mut answer.body, Bytes::from_static(NOTHING));
                    transferred.read(content.len(), true);
                    to.put(Piece::Data(content)).await?;
                }
                Ok(answer)
            }
        }
    }

    /// Sends a request with a long answer; `progress` sees and keeps parts of it.
    pub async fn stream(
        &self,
        outgoing: Outgoing,
        progress: &dyn ProgressSink,
    ) -> Result<EngineResponse, EngineError> {
        match &self.link {
            Link::Http(http) => http.stream(outgoing, progress).await,
            Link::InProcess(engine) => {
                let answer = engine.send(&outgoing).await?;
                progress.chunk(&answer.body);
                Ok(EngineResponse {
                    body: progress.kept(),
                    ..answer
                })
            }
        }
    }
}

//! Connections to an engine: a unix socket, or TLS over TCP.

use super::contact::{Contact, OpenConnection};
use arc_swap::ArcSwap;
use http::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use std::fmt::{self, Debug, Formatter};
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;

/// The address of an engine.
#[derive(Clone)]
pub enum EngineAddress {
    /// A unix socket.
    Unix(PathBuf),
    /// A TCP port whose server and client have certificates.
    Tls {
        /// DNS name or IP address.
        host: String,
        /// TCP port.
        port: u16,
        /// The name in the server's certificate.
        server_name: ServerName<'static>,
        /// Client certificate and trust of new connections.
        config: Arc<ArcSwap<ClientConfig>>,
    },
}

impl EngineAddress {
    /// The value of the `Host` header.
    pub fn authority(&self) -> String {
        match self {
            Self::Unix(_) => "localhost".to_owned(),
            Self::Tls { host, port, .. } if host.contains(':') => format!("[{host}]:{port}"),
            Self::Tls { host, port, .. } => format!("{host}:{port}"),
        }
    }

    async fn connect(&self) -> io::Result<Box<dyn ByteStream>> {
        match self {
            Self::Unix(path) => Ok(Box::new(UnixStream::connect(path).await?)),
            Self::Tls {
                host,
                port,
                server_name,
                config,
            } => {
                let tcp = TcpStream::connect((host.as_str(), *port)).await?;
                tcp.set_nodelay(true)?;
                let connector = TlsConnector::from(config.load_full());
                let tls = connector.connect(server_name.clone(), tcp).await?;
                Ok(Box::new(tls))
            }
        }
    }
}

impl Debug for EngineAddress {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => f.debug_tuple("Unix").field(path).finish(),
            Self::Tls { .. } => f.debug_tuple("Tls").field(&self.authority()).finish(),
        }
    }
}

/// Bytes to and from an engine.
trait ByteStream: AsyncRead + AsyncWrite + Debug + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Debug + Send + Unpin> ByteStream for S {}

/// Connects to the address, whatever the URI.
#[derive(Debug, Clone)]
pub struct Connector {
    address: Arc<EngineAddress>,
    contact: Arc<Contact>,
}

impl Connector {
    /// Makes a connector whose connections count in `contact`.
    pub fn new(address: EngineAddress, contact: &Arc<Contact>) -> Self {
        Self {
            address: Arc::new(address),
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
        let (address, contact) = (Arc::clone(&self.address), Arc::clone(&self.contact));
        Box::pin(async move {
            let stream = address.connect().await?;
            Ok(TokioIo::new(EngineStream {
                stream,
                connection: contact.connection(),
            }))
        })
    }
}

/// A stream for the client's pool.
#[derive(Debug)]
pub struct EngineStream {
    stream: Box<dyn ByteStream>,
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

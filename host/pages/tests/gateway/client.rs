//! TLS of a visitor and of the gateway, and a connection that sends bytes as they are.

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

/// A certificate of all pages, and its two ends.
#[derive(Clone)]
pub struct Tls {
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
}

impl Tls {
    pub fn new() -> Self {
        let names = vec!["*.pages.example".to_owned()];
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(cert.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let key = signing_key.serialize_der().try_into().unwrap();
        let mut server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .unwrap();
        server.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self {
            server: Arc::new(server),
            client: Arc::new(client),
        }
    }

    pub async fn accept(&self, io: TcpStream) -> io::Result<server::TlsStream<TcpStream>> {
        TlsAcceptor::from(Arc::clone(&self.server)).accept(io).await
    }

    /// Connects with HTTP/1.1.
    pub async fn connect(&self, address: SocketAddr) -> Raw {
        Raw(self.stream(address, b"http/1.1").await)
    }

    pub async fn stream(
        &self,
        address: SocketAddr,
        protocol: &[u8],
    ) -> client::TlsStream<TcpStream> {
        let mut config = ClientConfig::clone(&self.client);
        config.alpn_protocols = vec![protocol.to_vec()];
        let io = TcpStream::connect(address).await.unwrap();
        io.set_nodelay(true).unwrap();
        let name = ServerName::try_from("any.pages.example").unwrap();
        TlsConnector::from(Arc::new(config))
            .connect(name, io)
            .await
            .unwrap()
    }
}

/// A connection of a visitor.
pub struct Raw(pub client::TlsStream<TcpStream>);

impl Raw {
    pub async fn send(&mut self, bytes: &[u8]) {
        // The gateway may have answered and closed already.
        let _ = self.0.write_all(bytes).await;
        let _ = self.0.flush().await;
    }

    /// Reads one head.
    pub async fn head(&mut self) -> String {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let byte = timeout(Duration::from_secs(10), self.0.read_u8())
                .await
                .unwrap();
            let Ok(byte) = byte else { break };
            head.push(byte);
        }
        String::from_utf8(head).unwrap()
    }

    /// Reads this number of bytes.
    pub async fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        let read = self.0.read_exact(&mut bytes);
        timeout(Duration::from_secs(10), read)
            .await
            .unwrap()
            .unwrap();
        bytes
    }

    /// Reads until the end, for which it waits this time at most.
    pub async fn rest(&mut self, time: Duration) -> String {
        let mut bytes = Vec::new();
        let ended = timeout(time, self.0.read_to_end(&mut bytes)).await.is_ok();
        let read = String::from_utf8_lossy(&bytes).into_owned();
        assert!(ended, "the connection did not end after {read:.400}");
        read
    }

    /// Whether the connection is open for this time.
    pub async fn is_open_for(&mut self, time: Duration) -> bool {
        timeout(time, self.0.read_u8()).await.is_err()
    }
}

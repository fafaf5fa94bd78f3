//! The gateway in a process of its own, before one page: its memory is measured. The page is public, so the
//! figures are those of the gateway without a database.

use anyhow::Result;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use uuid::Uuid;
use wharf_domain::ids::{InstanceId, UserId};
use wharf_domain::secret::SecretText;
use wharf_pages::directory::{Page, PageState, Right, Upstream, UpstreamAddress};
use wharf_pages::one_page::OnePage;
use wharf_pages::{AcceptedConnection, Addresses, Gateway, GatewaySettings, PageLimits};
use wharf_testkit::child::KilledOnDrop;

/// The host of the page.
pub const HOST: &str = "demo.pages.example";

/// More than a measurement opens.
const CONNECTIONS: usize = 10_000;

/// Serves the page at a port with the certificate in a directory, until the process is killed.
pub fn serve(port: u16, directory: &Path) -> Result<()> {
    let instance = InstanceId(Uuid::nil());
    let page = Page {
        label: "demo".to_owned(),
        moved_to: None,
        owner: UserId(1),
        instance,
        state: PageState::Running(Upstream {
            instance,
            incarnation: 1,
            address: UpstreamAddress::Node {
                host: "127.0.0.1".to_owned(),
                port,
            },
            credential: Some(SecretText::new("token of-the-page")),
        }),
        is_public: true,
    };
    let settings = GatewaySettings {
        addresses: Addresses {
            is_https: true,
            domain: "pages.example".to_owned(),
            port: 443,
        },
        sign_in: String::new(),
        limits: PageLimits {
            connections_per_page: CONNECTIONS,
            connections_per_user: CONNECTIONS,
        },
        cookie_key: Box::new(|| [0; 32]),
        client: Box::new(|peer, _| peer),
    };
    let right = Right {
        user: page.owner,
        is_owner: true,
    };
    let directory_of_page = Arc::new(OnePage(page, right));
    let gateway = Arc::new(Gateway::new(directory_of_page, settings));
    let tls = TlsAcceptor::from(Arc::new(tls(directory)?));
    // Half of the cores, as the server has.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cores.div_ceil(2))
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let (_stop, stopped) = watch::channel(false);
        let (watched, until) = (Arc::clone(&gateway), stopped.clone());
        tokio::spawn(async move { watched.watch(until).await });
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        std::io::stdout().flush()?;
        tokio::spawn(async move {
            loop {
                let (io, peer) = listener.accept().await?;
                io.set_nodelay(true)?;
                let accepted = AcceptedConnection {
                    peer: peer.ip(),
                    welcome: Box::new(|| {}),
                    stopped: stopped.clone(),
                };
                let (tls, gateway) = (tls.clone(), Arc::clone(&gateway));
                tokio::spawn(async move {
                    if let Ok(io) = tls.accept(io).await {
                        gateway.serve(io, accepted).await;
                    }
                });
            }
        })
        .await?
    })
}

fn tls(directory: &Path) -> Result<ServerConfig> {
    let chain = CertificateDer::pem_file_iter(directory.join(CERTIFICATE))?;
    let chain = chain.collect::<std::result::Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_file(directory.join(KEY))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let mut config = config.with_no_client_auth().with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// The files of the certificate.
const CERTIFICATE: &str = "cert.pem";
const KEY: &str = "key.pem";

/// A gateway in a process of its own; dropping it kills the process.
pub struct GatewayProcess {
    child: KilledOnDrop,
    _directory: tempfile::TempDir,
    /// `HOST:PORT`.
    pub address: String,
    pub certificate: CertificateDer<'static>,
}

impl GatewayProcess {
    /// Starts a gateway before the page at a port.
    pub fn start(port: u16) -> Result<Self> {
        let made = rcgen::generate_simple_self_signed(vec![HOST.to_owned()])?;
        let directory = tempfile::tempdir()?;
        std::fs::write(directory.path().join(CERTIFICATE), made.cert.pem())?;
        std::fs::write(directory.path().join(KEY), made.signing_key.serialize_pem())?;
        let child = Command::new(std::env::current_exe()?)
            .arg("gateway")
            .arg(port.to_string())
            .arg(directory.path())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut child = KilledOnDrop(child);
        Ok(Self {
            address: child.first_line()?,
            child,
            _directory: directory,
            certificate: made.cert.der().clone(),
        })
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.0.id()
    }
}

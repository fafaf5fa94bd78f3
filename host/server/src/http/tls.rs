//! TLS for the REST interface and the pages by name, and the warning of an interface without it.

use super::start_error::InterfaceError;
use crate::{acme, certificate_dates};
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use prometheus_client::metrics::gauge::Gauge;
use rustls::ServerConfig;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::watch;
use wharf_config::Config;

/// How often the files of a certificate are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The files of a certificate, in PEM format, and the settings that name them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CertificateFiles {
    cert: PathBuf,
    key: PathBuf,
    settings: [&'static str; 2],
    /// Whether an authority has yet to issue the first certificate.
    may_be_missing: bool,
}

impl CertificateFiles {
    /// The files of the REST interface.
    pub(super) fn of_interface(config: &Config) -> Option<Self> {
        let tls = config.tls.as_ref()?;
        Some(Self {
            cert: tls.cert.clone(),
            key: tls.key.clone(),
            settings: ["tls.cert", "tls.key"],
            may_be_missing: false,
        })
    }

    /// The files of the pages by name.
    pub(super) fn of_pages(config: &Config) -> Option<Self> {
        let pages = config.pages.as_ref()?;
        if pages.acme.is_some() {
            let file = acme::certificate_file(config);
            return Some(Self {
                cert: file.clone(),
                key: file,
                settings: ["pages.acme", "pages.acme"],
                may_be_missing: true,
            });
        }
        Some(Self {
            cert: pages.cert.clone()?,
            key: pages.key.clone()?,
            settings: ["pages.cert", "pages.key"],
            may_be_missing: false,
        })
    }

    /// The times of the last changes.
    fn changed_at(&self) -> [Option<SystemTime>; 2] {
        [&self.cert, &self.key].map(|path| std::fs::metadata(path).ok()?.modified().ok())
    }
}

/// A certificate that follows its files.
pub(super) struct Certificate {
    pub(super) present: Arc<ArcSwap<ServerConfig>>,
    files: Mutex<(CertificateFiles, [Option<SystemTime>; 2])>,
    /// Its end, in seconds since 1970.
    expiry: Gauge,
}

/// No certificate: handshakes fail.
#[derive(Debug)]
struct NoCertificate;

impl ResolvesServerCert for NoCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        None
    }
}

impl Certificate {
    /// Reads the files. The gauge gets the end of the certificate.
    pub(super) fn read(
        files: CertificateFiles,
        expiry: Gauge,
    ) -> Result<Arc<Self>, InterfaceError> {
        let changed_at = files.changed_at();
        Ok(Arc::new(Self {
            present: Arc::new(ArcSwap::new(read(&files, &expiry)?)),
            files: Mutex::new((files, changed_at)),
            expiry,
        }))
    }

    /// Reads the files again, which may be others. Connections that are open keep the earlier certificate.
    pub(super) fn reload(&self, files: CertificateFiles) -> Result<(), InterfaceError> {
        let changed_at = files.changed_at();
        self.present.store(read(&files, &self.expiry)?);
        *self.files.lock() = (files, changed_at);
        Ok(())
    }

    /// Reads the files again when they have changed, until `stopped` turns true.
    pub(super) async fn follow(self: Arc<Self>, mut stopped: watch::Receiver<bool>) {
        let mut look = tokio::time::interval(LOOK_EVERY);
        loop {
            tokio::select! {
                _ = stopped.wait_for(|stopped| *stopped) => return,
                _ = look.tick() => {}
            }
            self.look();
        }
    }

    fn look(&self) {
        let (files, before) = self.files.lock().clone();
        let now = files.changed_at();
        if now == before {
            return;
        }
        // The other file may change a moment later, which is another change then.
        self.files.lock().1 = now;
        match read(&files, &self.expiry) {
            Ok(certificate) => {
                self.present.store(certificate);
                let file = files.cert.display();
                tracing::info!(%file, "the certificate has changed and is read again");
            }
            Err(error) => tracing::warn!(
                "the certificate has changed and cannot be used, so the earlier one stays: {error}"
            ),
        }
    }
}

/// Reads the certificate chain and the key.
fn read(files: &CertificateFiles, expiry: &Gauge) -> Result<Arc<ServerConfig>, InterfaceError> {
    let wrong = |setting: &'static str, message: String| InterfaceError::Tls { setting, message };
    let file = |setting, path: &Path, error: String| {
        wrong(setting, format!("{}: {error}", path.display()))
    };
    let [of_cert, of_key] = files.settings;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(of_cert, error.to_string()))?
        .with_no_client_auth();
    if files.may_be_missing && !files.cert.exists() {
        return Ok(Arc::new(config.with_cert_resolver(Arc::new(NoCertificate))));
    }
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(&files.cert)
        .and_then(Iterator::collect)
        .map_err(|error| file(of_cert, &files.cert, error.to_string()))?;
    if chain.is_empty() {
        let none = "no PEM certificate in the file".to_owned();
        return Err(file(of_cert, &files.cert, none));
    }
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|error| file(of_key, &files.key, error.to_string()))?;
    let validity = chain.first().and_then(certificate_dates::validity);
    let mut config = config
        .with_single_cert(chain, key)
        .map_err(|error| wrong(of_key, error.to_string()))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    if let Some(end) = validity.and_then(|(_, end)| i64::try_from(end).ok()) {
        expiry.set(end);
    }
    Ok(Arc::new(config))
}

/// Whether other machines reach this address without encryption.
pub fn is_plain_http(config: &Config, address: SocketAddr) -> bool {
    config.tls.is_none() && !address.ip().is_loopback()
}

/// Warns about API keys and passwords on a network without encryption.
pub fn warn_of_plain_http(config: &Config, address: SocketAddr) {
    if is_plain_http(config, address) {
        tracing::warn!(
            listen = %address,
            "plain HTTP on an address that other machines reach: API keys and passwords are \
             readable on the way; set `tls`, or listen on 127.0.0.1 behind a proxy with TLS"
        );
    }
}

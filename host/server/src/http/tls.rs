//! TLS for the REST interface, and the warning of an interface without it.

use super::start_error::InterfaceError;
use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use wharf_config::{Config, TlsConfig};

/// Reads the certificate chain and the key.
pub(super) fn read(tls: &TlsConfig) -> Result<Arc<ServerConfig>, InterfaceError> {
    let wrong = |setting: &'static str, message: String| InterfaceError::Tls { setting, message };
    let file = |setting, path: &Path, error: String| {
        wrong(setting, format!("{}: {error}", path.display()))
    };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(&tls.cert)
        .and_then(Iterator::collect)
        .map_err(|error| file("tls.cert", &tls.cert, error.to_string()))?;
    if chain.is_empty() {
        let none = "no PEM certificate in the file".to_owned();
        return Err(file("tls.cert", &tls.cert, none));
    }
    let key = PrivateKeyDer::from_pem_file(&tls.key)
        .map_err(|error| file("tls.key", &tls.key, error.to_string()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong("tls", error.to_string()))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| wrong("tls.key", error.to_string()))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
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

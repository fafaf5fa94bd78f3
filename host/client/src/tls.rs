//! Settings of TLS for clients. ring is the provider of all of Wharf.

use rustls::crypto::ring;
use rustls::{ClientConfig, Error, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;
use std::sync::Arc;

/// TLS with the certificates of the operating system, or with those of the file in `SSL_CERT_FILE`.
///
/// # Errors
/// When the operating system has no certificates.
pub fn trusting_system() -> Result<ClientConfig, Error> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(BuilderVerifierExt::with_platform_verifier)?;
    Ok(builder.with_no_client_auth())
}

/// TLS that trusts no server, for a client that needs none: reqwest asks for its settings anyway.
///
/// # Errors
/// When the provider lacks a version of TLS.
pub fn trusting_none() -> Result<ClientConfig, Error> {
    let provider = Arc::new(ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let builder = builder.with_root_certificates(RootCertStore::empty());
    Ok(builder.with_no_client_auth())
}

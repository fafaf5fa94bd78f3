//! The certificates of `[node.tls]`.

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use std::path::Path;
use wharf_config::{EngineTls, NodeConfig};
use wharf_domain::ids::NodeId;
use wharf_engine::EngineEndpoint;
use wharf_engine::tls::{ClientIdentity, ClientTls, Trust, client_config};
use wharf_secure_fs::{Untrusted, check_own, check_secret};

/// A setting of `[node.tls]` that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum NodeTlsError {
    /// An `https://` endpoint has no certificates.
    #[error(
        "required for an endpoint https://; set `cert`, `key`, and either `ca` or `server_cert`"
    )]
    Missing,
    /// Another endpoint has certificates.
    #[error("only an endpoint https://HOST:PORT has certificates")]
    Unused,
    /// The trust in the engine is not set, or set twice.
    #[error("set either `ca` or `server_cert`")]
    Trust,
    /// A name without an issuer has no effect.
    #[error(
        "{0:?} has no effect with `server_cert`, which accepts one certificate whatever its name"
    )]
    IdleName(String),
    /// The expected name is not valid.
    #[error("{0:?} is neither a DNS name nor an IP address")]
    Name(String),
    /// Other accounts can read or change a file.
    #[error(transparent)]
    Untrusted(#[from] Untrusted),
    /// A file has no certificate or key.
    #[error("{path}: {message}")]
    File { path: String, message: String },
    /// The certificate and the key do not fit.
    #[error("{0}")]
    Unusable(rustls::Error),
}

/// The expected name of an engine, and the settings of its connections.
#[derive(Debug, Clone)]
pub struct NodeTls {
    pub server_name: ServerName<'static>,
    pub config: ClientTls,
}

/// Reads the certificates of all nodes behind TLS.
pub fn read_all(nodes: &[NodeConfig]) -> Result<Vec<(NodeId, ClientTls)>, WrongNodeTls> {
    let mut all = Vec::new();
    for node in nodes {
        let Ok(EngineEndpoint::Https { host, .. }) = EngineEndpoint::parse(&node.endpoint) else {
            continue;
        };
        let read = read(node, &host).map_err(|error| WrongNodeTls::of(node, error))?;
        all.push((NodeId(node.name.clone()), read.config));
    }
    Ok(all)
}

/// A setting of a node's certificates that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("setting `node.{node}.{setting}`")]
pub struct WrongNodeTls {
    node: String,
    setting: &'static str,
    source: NodeTlsError,
}

impl WrongNodeTls {
    /// An error of [`read`] or of [`check_unused`].
    pub fn of(node: &NodeConfig, (setting, source): (&'static str, NodeTlsError)) -> Self {
        let node = node.name.clone();
        Self {
            node,
            setting,
            source,
        }
    }
}

/// Refuses certificates that no connection uses.
pub fn check_unused(node: &NodeConfig) -> Result<(), (&'static str, NodeTlsError)> {
    match node.tls {
        Some(_) => Err(("tls", NodeTlsError::Unused)),
        None => Ok(()),
    }
}

/// Reads the certificates of a node whose endpoint has this host. An error comes with its setting.
pub fn read(node: &NodeConfig, host: &str) -> Result<NodeTls, (&'static str, NodeTlsError)> {
    let tls = node.tls.as_ref().ok_or(("tls", NodeTlsError::Missing))?;
    let server_name = name(tls, host).map_err(|error| ("tls.server_name", error))?;
    let trust = match (&tls.ca, &tls.server_cert) {
        (Some(ca), None) => {
            let issuers = certificates(ca).map_err(|error| ("tls.ca", error))?;
            Trust::Issuers(issuers, server_name.clone())
        }
        (None, Some(file)) => {
            let mut found = certificates(file).map_err(|error| ("tls.server_cert", error))?;
            Trust::Pinned(found.swap_remove(0))
        }
        _ => return Err(("tls", NodeTlsError::Trust)),
    };
    let identity = ClientIdentity {
        chain: certificates(&tls.cert).map_err(|error| ("tls.cert", error))?,
        key: key(&tls.key).map_err(|error| ("tls.key", error))?,
    };
    let config = client_config(identity, trust)
        .map_err(|error| ("tls.key", NodeTlsError::Unusable(error)))?;
    Ok(NodeTls {
        server_name,
        config,
    })
}

fn name(tls: &EngineTls, host: &str) -> Result<ServerName<'static>, NodeTlsError> {
    if let (Some(name), Some(_)) = (&tls.server_name, &tls.server_cert) {
        return Err(NodeTlsError::IdleName(name.clone()));
    }
    let name = tls.server_name.as_deref().unwrap_or(host).to_owned();
    ServerName::try_from(name.clone()).map_err(|_| NodeTlsError::Name(name))
}

/// The certificates of a file that no other account can change; at least one.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, NodeTlsError> {
    check_own(path)?;
    let found: Vec<_> = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|error| file(path, error.to_string()))?;
    if found.is_empty() {
        return Err(file(path, "no PEM certificate in the file".to_owned()));
    }
    Ok(found)
}

fn key(path: &Path) -> Result<PrivateKeyDer<'static>, NodeTlsError> {
    check_secret(path)?;
    PrivateKeyDer::from_pem_file(path).map_err(|error| file(path, error.to_string()))
}

fn file(path: &Path, message: String) -> NodeTlsError {
    let path = path.display().to_string();
    NodeTlsError::File { path, message }
}

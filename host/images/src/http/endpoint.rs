//! The address of a server.

use anyhow::{Result, bail};
use reqwest::redirect;
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::ServerName;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// `unix:///path`, `http://host:port`, or an address with certificates.
#[derive(Debug, Clone)]
pub enum Endpoint {
    /// A unix socket.
    Unix(PathBuf),
    /// `host:port`.
    Tcp(String),
    /// TLS at `host:port`.
    Tls {
        /// `host:port`.
        address: String,
        /// The name in the server's certificate.
        server_name: ServerName<'static>,
        /// Client certificate, and trust in certificates for this name.
        config: Arc<ClientConfig>,
    },
}

impl Endpoint {
    /// Parses an endpoint as written in the configuration.
    pub fn parse(text: &str) -> Result<Self> {
        if let Some(path) = text.strip_prefix("unix://")
            && Path::new(path).is_absolute()
        {
            return Ok(Self::Unix(path.into()));
        }
        if let Some(address) = text.strip_prefix("http://") {
            return Ok(Self::Tcp(address.trim_end_matches('/').to_owned()));
        }
        bail!("endpoint {text:?}: must be unix:///absolute/path or http://host:port");
    }

    /// A client of this server alone. It keeps no connection, follows no redirect and uses no proxy.
    pub(super) async fn client(&self) -> Result<reqwest::Client> {
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(redirect::Policy::none())
            .http1_only();
        let client = match self {
            Self::Unix(path) => client.unix_socket(path.as_path()),
            Self::Tcp(_) => client,
            Self::Tls {
                address,
                server_name: ServerName::DnsName(name),
                ..
            } => {
                let found: Vec<_> = tokio::net::lookup_host(address).await?.collect();
                client.resolve_to_addrs(name.as_ref(), &found)
            }
            Self::Tls { .. } => client,
        };
        let tls = match self {
            Self::Tls {
                config,
                server_name,
                ..
            } => {
                let mut tls = ClientConfig::clone(config);
                tls.enable_sni = matches!(server_name, ServerName::DnsName(_));
                tls
            }
            Self::Unix(_) | Self::Tcp(_) => unused_tls()?,
        };
        Ok(client.tls_backend_preconfigured(tls).build()?)
    }

    /// The URL of a path. Its host is the DNS name in the server's certificate, which TLS asks for. A client
    /// connects to an IP address in a URL, so a certificate for one leaves the host of the server there.
    pub(super) fn url(&self, path: &str) -> String {
        match self {
            Self::Unix(_) => format!("http://localhost{path}"),
            Self::Tcp(address) => format!("http://{address}{path}"),
            Self::Tls {
                address,
                server_name: ServerName::DnsName(name),
                ..
            } => {
                let (_, port) = address.rsplit_once(':').unwrap_or_default();
                format!("https://{}:{port}{path}", name.as_ref())
            }
            Self::Tls { address, .. } => format!("https://{address}{path}"),
        }
    }

    /// The value of the `Host` header.
    pub(super) fn authority(&self) -> &str {
        match self {
            Self::Unix(_) => "localhost",
            Self::Tcp(address) | Self::Tls { address, .. } => address,
        }
    }
}

/// The client needs a configuration of TLS even for a server without TLS. This one trusts no server.
fn unused_tls() -> Result<ClientConfig> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions()?;
    let trusting = builder.with_root_certificates(RootCertStore::empty());
    Ok(trusting.with_no_client_auth())
}

/// Two endpoints are equal if they are written alike, whatever their certificates.
impl PartialEq for Endpoint {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
            Self::Tcp(address) => write!(f, "http://{address}"),
            Self::Tls { address, .. } => write!(f, "https://{address}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Endpoint;

    #[test]
    fn only_sockets_and_plain_http_are_endpoints() {
        let parse = |text| Endpoint::parse(text).map(|endpoint| endpoint.to_string());
        assert_eq!(parse("unix:///run/x.sock").unwrap(), "unix:///run/x.sock");
        assert_eq!(
            parse("http://127.0.0.1:80/").unwrap(),
            "http://127.0.0.1:80"
        );
        assert!(parse("unix://run/x.sock").is_err());
        assert!(parse("/run/x.sock").is_err());
    }
}

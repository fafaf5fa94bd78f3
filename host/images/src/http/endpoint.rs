//! The address of a server.

use anyhow::{Result, bail};
use rustls_pki_types::ServerName;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::rustls::ClientConfig;

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
        /// Client certificate and trust.
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

    /// The value of the `Host` header.
    pub(super) fn authority(&self) -> &str {
        match self {
            Self::Unix(_) => "localhost",
            Self::Tcp(address) | Self::Tls { address, .. } => address,
        }
    }
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

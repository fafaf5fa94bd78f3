//! A client of the admin service, for the subcommands of `wharf`.

use crate::operation::Operation;
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use std::io::{self, ErrorKind};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

/// The size limit of a response in bytes.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// The reason why a request to the running server failed.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// The socket cannot be opened.
    #[error("cannot open {path}")]
    Open { path: String, source: io::Error },
    /// The server sent no response, or a broken one.
    #[error("no answer from the running server: {0}")]
    Unanswered(String),
    /// The server refused.
    #[error("{0}")]
    Refused(String),
}

/// A client of the running server.
pub struct AdminClient(reqwest::Client);

impl AdminClient {
    /// Finds the running server; none if no server runs.
    pub fn connect(socket: &Path) -> Result<Option<Self>, AdminError> {
        match UnixStream::connect(socket) {
            Ok(_) => Ok(Some(Self(client(socket)?))),
            Err(error) => match error.kind() {
                ErrorKind::NotFound | ErrorKind::ConnectionRefused => Ok(None),
                _ => Err(AdminError::Open {
                    path: socket.display().to_string(),
                    source: error,
                }),
            },
        }
    }

    /// Runs an operation in the server.
    pub async fn perform<O: Operation>(&self, operation: &O) -> Result<O::Reply, AdminError> {
        let body = serde_json::to_vec(operation).map_err(unanswered)?;
        let request = self.0.post(format!("http://wharf{}", O::PATH)).body(body);
        let response = request.timeout(O::TIMEOUT).send().await;
        let mut response = response.map_err(failed)?;
        let mut reply = Vec::new();
        while let Some(part) = response.chunk().await.map_err(failed)? {
            reply.extend_from_slice(&part);
            if reply.len() > MAX_BYTES {
                return Err(unanswered("the response is too large"));
            }
        }
        if !response.status().is_success() {
            return Err(AdminError::Refused(reason(&reply)));
        }
        // The error would repeat parts of the body, which may be a key.
        serde_json::from_slice(&reply)
            .map_err(|_| unanswered("the response has an unexpected form"))
    }
}

/// The socket has no TLS, but reqwest asks for its settings.
fn client(socket: &Path) -> Result<reqwest::Client, AdminError> {
    let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(unanswered)?
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let client = reqwest::Client::builder().unix_socket(socket).no_proxy();
    let client = client.tls_backend_preconfigured(tls).build();
    client.map_err(unanswered)
}

fn failed(error: reqwest::Error) -> AdminError {
    if error.is_timeout() {
        return unanswered("it took too long");
    }
    // The error with its causes.
    unanswered(format!("{:#}", anyhow::Error::new(error.without_url())))
}

fn unanswered(error: impl std::fmt::Display) -> AdminError {
    AdminError::Unanswered(error.to_string())
}

/// `{"detail": "…"}` or `{"field": ["…"]}` as a line of text.
fn reason(body: &[u8]) -> String {
    match serde_json::from_slice(body) {
        Ok(Value::Object(fields)) => {
            let lines = fields.iter().map(|(field, what)| match what {
                Value::String(text) => text.clone(),
                Value::Array(texts) => {
                    let texts: Vec<&str> = texts.iter().filter_map(Value::as_str).collect();
                    format!("{field}: {}", texts.join("; "))
                }
                other => format!("{field}: {other}"),
            });
            lines.collect::<Vec<_>>().join("\n")
        }
        _ => "the running server refused without a reason".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{AdminClient, reason};

    #[test]
    fn refusals_are_readable() {
        assert_eq!(reason(br#"{"detail": "Not found."}"#), "Not found.");
        assert_eq!(
            reason(br#"{"email": ["must be one"]}"#),
            "email: must be one"
        );
        assert!(reason(b"<html>").contains("without a reason"));
    }

    #[test]
    fn no_server() {
        let nowhere = std::env::temp_dir().join("wharf-no-such-admin.sock");
        assert!(AdminClient::connect(&nowhere).unwrap().is_none());
    }
}

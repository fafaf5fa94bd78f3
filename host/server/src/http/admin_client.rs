//! A client of the admin service, for the subcommands of `wharf`.

use crate::operation::Operation;
use bytes::Bytes;
use http::header::HOST;
use http::{Method, Request};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::time::timeout;

/// The size limit of a response in bytes.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// Why a request to the running server failed.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// The socket cannot be opened.
    #[error("cannot open {path}")]
    Open {
        /// The socket.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The server sent no response, or a broken one.
    #[error("no answer from the running server: {0}")]
    Unanswered(String),
    /// The server refused.
    #[error("{0}")]
    Refused(String),
}

/// A connection to the running server.
pub struct AdminClient(SendRequest<Full<Bytes>>);

impl AdminClient {
    /// Connects; none if no server runs.
    pub async fn connect(socket: &Path) -> Result<Option<Self>, AdminError> {
        let stream = match UnixStream::connect(socket).await {
            Ok(stream) => stream,
            Err(error) => match error.kind() {
                ErrorKind::NotFound | ErrorKind::ConnectionRefused => return Ok(None),
                _ => {
                    return Err(AdminError::Open {
                        path: socket.display().to_string(),
                        source: error,
                    });
                }
            },
        };
        let (client, connection) = handshake(TokioIo::new(stream)).await.map_err(unanswered)?;
        tokio::spawn(connection);
        Ok(Some(Self(client)))
    }

    /// Runs an operation in the server.
    pub async fn perform<O: Operation>(&mut self, operation: O) -> Result<O::Reply, AdminError> {
        let body = serde_json::to_vec(&operation).map_err(unanswered)?;
        let reply = self.ask(Method::POST, O::PATH, body, O::TIMEOUT).await?;
        // The error would repeat parts of the body, which may be a key.
        serde_json::from_slice(&reply)
            .map_err(|_| unanswered("the response has an unexpected form"))
    }

    async fn ask(
        &mut self,
        method: Method,
        path: &str,
        body: Vec<u8>,
        limit: Duration,
    ) -> Result<Bytes, AdminError> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, "wharf")
            .body(Full::new(body.into()))
            .map_err(unanswered)?;
        let exchange = async {
            self.0.ready().await.map_err(unanswered)?;
            let response = self.0.send_request(request).await.map_err(unanswered)?;
            let status = response.status();
            let body = Limited::new(response.into_body(), MAX_BYTES)
                .collect()
                .await;
            Ok((status, body.map_err(unanswered)?.to_bytes()))
        };
        let (status, body) = timeout(limit, exchange)
            .await
            .map_err(|_| AdminError::Unanswered("it took too long".to_owned()))??;
        if status.is_success() {
            Ok(body)
        } else {
            Err(AdminError::Refused(reason(&body)))
        }
    }
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

    #[tokio::test]
    async fn no_server() {
        let nowhere = std::env::temp_dir().join("wharf-no-such-admin.sock");
        assert!(AdminClient::connect(&nowhere).await.unwrap().is_none());
    }
}

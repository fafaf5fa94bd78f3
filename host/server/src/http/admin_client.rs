//! A client of the admin service, for the subcommands of `wharf`.

use super::admin::{BillOf, EventsOf, Key, Made, NewKey};
use bytes::Bytes;
use http::header::HOST;
use http::{Method, Request};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::time::timeout;
use wharf_control::history::{BillLine, EventLine};
use wharf_control::{ApiKey, KeyInfo};
use wharf_domain::secret::SecretText;
use wharf_domain::time::Timestamp;

/// The time limit of one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

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

    /// Makes a key.
    pub async fn new_key(&mut self, email: &str, name: &str) -> Result<ApiKey, AdminError> {
        let wanted = NewKey {
            email: email.to_owned(),
            name: name.to_owned(),
        };
        let body = serde_json::to_vec(&wanted).map_err(unanswered)?;
        let made: Made = read(&self.ask(Method::POST, "/keys", body).await?)?;
        Ok(ApiKey {
            id: made.id,
            key: SecretText::new(made.key),
        })
    }

    /// The event log of an instance.
    pub async fn events(&mut self, instance: &str) -> Result<Vec<EventLine>, AdminError> {
        let instance = instance.to_owned();
        let body = serde_json::to_vec(&EventsOf { instance }).map_err(unanswered)?;
        read(&self.ask(Method::POST, "/events", body).await?)
    }

    /// The costs of a user's instances.
    pub async fn bill(
        &mut self,
        email: &str,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Vec<BillLine>, AdminError> {
        let asked = BillOf {
            email: email.to_owned(),
            from_ms: from.0,
            to_ms: to.0,
        };
        let body = serde_json::to_vec(&asked).map_err(unanswered)?;
        read(&self.ask(Method::POST, "/bill", body).await?)
    }

    /// All keys.
    pub async fn list(&mut self) -> Result<Vec<KeyInfo>, AdminError> {
        let list: Vec<Key> = read(&self.ask(Method::GET, "/keys", Vec::new()).await?)?;
        Ok(list.into_iter().map(KeyInfo::from).collect())
    }

    /// Makes a key invalid.
    pub async fn revoke(&mut self, id: &str) -> Result<(), AdminError> {
        // Any other text would be another path.
        if id.is_empty() || !id.bytes().all(|b| b.is_ascii_alphanumeric()) {
            return Err(AdminError::Refused(format!("no key has the id {id:?}")));
        }
        let path = format!("/keys/{id}");
        self.ask(Method::DELETE, &path, Vec::new()).await.map(drop)
    }

    async fn ask(
        &mut self,
        method: Method,
        path: &str,
        body: Vec<u8>,
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
        let (status, body) = timeout(REQUEST_TIMEOUT, exchange)
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

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, AdminError> {
    // The error would repeat parts of the body, which may be a key.
    serde_json::from_slice(body).map_err(|_| unanswered("not what was expected"))
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
        _ => "the running server refused, and did not say why".to_owned(),
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
        assert!(reason(b"<html>").contains("did not say why"));
    }

    #[tokio::test]
    async fn no_server() {
        let nowhere = std::env::temp_dir().join("wharf-no-such-admin.sock");
        assert!(AdminClient::connect(&nowhere).await.unwrap().is_none());
    }
}

//! A client of the admin service, for the subcommands of `wharf`.

use crate::operation::Operation;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::time::{sleep, timeout};
use wharf_client::{Client, Error as ClientError, Method};

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

impl From<ClientError> for AdminError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Refused(refusal) if OTHER_VERSION.contains(&refusal.status) => {
                Self::Refused(format!(
                    "{refusal}; the running server may be of another version: restart it"
                ))
            }
            ClientError::Refused(refusal) => Self::Refused(refusal.to_string()),
            error => Self::Unanswered(error.to_string()),
        }
    }
}

/// The statuses of a path or of a field that the running server does not know.
const OTHER_VERSION: [u16; 2] = [404, 422];
/// The time for a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
const CONNECT_PAUSE: Duration = Duration::from_millis(100);

/// A client of the running server.
pub struct AdminClient(PathBuf);

impl AdminClient {
    /// Finds the running server; none if no server runs.
    pub async fn connect(socket: &Path) -> Result<Option<Self>, AdminError> {
        Self::connect_within(CONNECT_LIMIT, socket).await
    }

    async fn connect_within(limit: Duration, socket: &Path) -> Result<Option<Self>, AdminError> {
        let late = || ErrorKind::TimedOut.into();
        let connected = timeout(limit, accepted(socket)).await;
        match connected.unwrap_or_else(|_| Err(late())) {
            Ok(()) => Ok(Some(Self(socket.to_owned()))),
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
        let client = Client::at_socket(&self.0, O::TIMEOUT)?;
        let request = client.request::<()>(Method::POST, O::PATH).json(operation);
        let reply = request.bytes().await?;
        // The error would repeat parts of the body, which may be a key.
        let unexpected =
            |_| AdminError::Unanswered("the response has an unexpected form".to_owned());
        serde_json::from_slice(&reply).map_err(unexpected)
    }
}

/// Waits until a server takes a connection. One with too many connections that wait refuses further ones.
async fn accepted(socket: &Path) -> io::Result<()> {
    loop {
        match UnixStream::connect(socket).await {
            Err(error) if error.kind() == ErrorKind::WouldBlock => sleep(CONNECT_PAUSE).await,
            connected => return connected.map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::AdminClient;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;
    use tokio::net::UnixSocket;

    #[tokio::test]
    async fn no_server() {
        let nowhere = std::env::temp_dir().join("wharf-no-such-admin.sock");
        assert!(AdminClient::connect(&nowhere).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_server_that_accepts_nothing_is_an_error() {
        let name = format!("wharf-full-admin-{}.sock", std::process::id());
        let path = std::env::temp_dir().join(name);
        let socket = UnixSocket::new_stream().unwrap();
        socket.bind(&path).unwrap();
        let _server = socket.listen(0).unwrap();
        let _waiting = UnixStream::connect(&path).unwrap();
        let limit = Duration::from_millis(300);
        let error = AdminClient::connect_within(limit, &path).await.err();
        std::fs::remove_file(&path).unwrap();
        let expected = format!("cannot open {}", path.display());
        assert_eq!(error.unwrap().to_string(), expected);
    }
}

//! A client of the admin service, for the subcommands of `wharf`.

use crate::operation::Operation;
use std::io::{self, ErrorKind};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
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
            ClientError::Refused(refusal) => Self::Refused(refusal.to_string()),
            error => Self::Unanswered(error.to_string()),
        }
    }
}

/// A client of the running server.
pub struct AdminClient(PathBuf);

impl AdminClient {
    /// Finds the running server; none if no server runs.
    pub fn connect(socket: &Path) -> Result<Option<Self>, AdminError> {
        match UnixStream::connect(socket) {
            Ok(_) => Ok(Some(Self(socket.to_owned()))),
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

#[cfg(test)]
mod tests {
    use super::AdminClient;

    #[test]
    fn no_server() {
        let nowhere = std::env::temp_dir().join("wharf-no-such-admin.sock");
        assert!(AdminClient::connect(&nowhere).unwrap().is_none());
    }
}

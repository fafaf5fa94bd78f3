//! A login at the SSH server of an instance.

use super::TerminalEnd;
use super::dial::{Allowance, Hangup, dial};
use russh::client::{self, AuthResult, Handle, connect_stream};
use russh::keys::{HashAlg, PublicKeyOrCertificate};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use wharf_domain::host_key::HostKey;
use wharf_domain::secret::SecretText;

/// Bytes that the SSH server may send before they are read, and packets that may wait.
const WINDOW: u32 = 256 * 1024;
const PACKETS: usize = 4;

/// A server that sends nothing is asked for a sign of life after this time. The connection is lost
/// after three that stay unanswered.
pub const KEEPALIVE: Duration = Duration::from_secs(20);

/// Decides whether a host key, which its server has proven to have, is that of the instance.
pub type IsKnown = Box<dyn Fn(HostKey) -> Pin<Box<dyn Future<Output = bool> + Send>> + Send + Sync>;

/// The SSH server of an instance, and the login.
pub struct SshTarget {
    pub host: String,
    pub port: u16,
    pub user: String,
    pub password: SecretText,
    /// A server with another key is sent nothing.
    pub is_known: IsKnown,
}

impl fmt::Debug for SshTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}:{}", self.user, self.host, self.port)
    }
}

/// An SSH connection whose login was accepted. It ends when this is dropped.
pub struct Connection {
    hangup: Hangup,
    pub allowance: Allowance,
    pub handle: Handle<HostKeyCheck>,
}

/// Checks the host key.
pub struct HostKeyCheck(IsKnown);

impl client::Handler for HostKeyCheck {
    type Error = russh::Error;

    async fn check_server_key(
        &mut self,
        shown: &PublicKeyOrCertificate,
    ) -> Result<bool, Self::Error> {
        match host_key(shown) {
            Some(shown) => Ok(self.0(shown).await),
            None => Ok(false),
        }
    }
}

/// The host key that an SSH server shows; none for a certificate.
pub fn host_key(shown: &PublicKeyOrCertificate) -> Option<HostKey> {
    let PublicKeyOrCertificate::PublicKey { key, .. } = shown else {
        return None;
    };
    Some(HostKey {
        algorithm: key.algorithm().as_str().to_owned(),
        fingerprint: key.fingerprint(HashAlg::Sha256).to_string(),
        public_key: key.to_openssh().ok()?,
    })
}

impl Connection {
    /// Ends the connection, whichever channels use it.
    pub fn hang_up(&self) {
        self.hangup.hang_up();
    }

    /// Logs in with the password.
    pub async fn open(target: SshTarget) -> Result<Self, TerminalEnd> {
        let config = client::Config {
            window_size: WINDOW,
            channel_buffer_size: PACKETS,
            keepalive_interval: Some(KEEPALIVE),
            ..client::Config::default()
        };
        let dialled = dial(&target.host, target.port).await;
        let (stream, hangup) =
            dialled.map_err(|error| failed(&error.into(), TerminalEnd::Unreachable))?;
        let allowance = stream.allowance();
        let connected =
            connect_stream(Arc::new(config), stream, HostKeyCheck(target.is_known)).await;
        let mut handle = connected.map_err(|error| match error {
            russh::Error::UnknownKey => TerminalEnd::HostKey,
            error => failed(&error, TerminalEnd::Unreachable),
        })?;
        let login = handle.authenticate_password(target.user, target.password.expose().to_owned());
        match login.await {
            Ok(AuthResult::Success) => Ok(Self {
                hangup,
                allowance,
                handle,
            }),
            Ok(AuthResult::Failure { .. }) => Err(TerminalEnd::Password),
            Err(error) => Err(failed(&error, TerminalEnd::Lost)),
        }
    }
}

/// The end for the client; the error is for the operator.
pub fn failed(error: &russh::Error, end: TerminalEnd) -> TerminalEnd {
    tracing::debug!(%error, ?end, "the SSH server of an instance is of no use");
    end
}

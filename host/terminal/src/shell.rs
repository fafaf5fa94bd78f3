//! A shell over SSH, as OpenSSH's client opens it.

use super::dial::{Allowance, Hangup, dial};
use super::output::Output;
use super::{TerminalEnd, TerminalSize};
use bytes::Bytes;
use russh::client::{self, AuthResult, Handle, connect_stream};
use russh::keys::{HashAlg, PublicKeyOrCertificate};
use russh::{ChannelMsg, ChannelReadHalf, ChannelWriteHalf, Pty};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use wharf_domain::host_key::HostKey;
use wharf_domain::secret::SecretText;

/// The type of terminal that browsers' terminals emulate.
const TERM: &str = "xterm-256color";

/// Bytes that the SSH server may send before they are read, and packets that may wait.
const WINDOW: u32 = 256 * 1024;
const PACKETS: usize = 4;

/// A server that sends nothing is asked for a sign of life after this time. The connection is lost
/// after three that stay unanswered.
const KEEPALIVE: Duration = Duration::from_secs(20);

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

/// A shell with a terminal.
pub struct Shell {
    _hangup: Hangup,
    allowance: Allowance,
    _connection: Handle<HostKeyCheck>,
    output: ChannelReadHalf,
    input: ChannelWriteHalf<client::Msg>,
}

/// Checks the host key.
struct HostKeyCheck(IsKnown);

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

impl Shell {
    /// Opens a shell.
    pub async fn open(target: SshTarget, size: TerminalSize) -> Result<Self, TerminalEnd> {
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
        let mut connection = connected.map_err(|error| match error {
            russh::Error::UnknownKey => TerminalEnd::HostKey,
            error => failed(&error, TerminalEnd::Unreachable),
        })?;
        let login =
            connection.authenticate_password(target.user, target.password.expose().to_owned());
        match login.await {
            Ok(AuthResult::Success) => {}
            Ok(AuthResult::Failure { .. }) => return Err(TerminalEnd::Password),
            Err(error) => return Err(failed(&error, TerminalEnd::Lost)),
        }
        let opened = begin(&connection, size).await;
        let (output, input) = opened.map_err(|error| failed(&error, TerminalEnd::NoShell))?;
        Ok(Self {
            _hangup: hangup,
            allowance,
            _connection: connection,
            output,
            input,
        })
    }

    /// Carries bytes and sizes until the shell ends.
    pub async fn run(
        &mut self,
        output: &Output,
        mut inputs: mpsc::Receiver<Bytes>,
        mut sizes: watch::Receiver<TerminalSize>,
    ) -> TerminalEnd {
        let writer = &self.input;
        let set = async |size: TerminalSize| {
            let TerminalSize { cols, rows } = size;
            writer
                .window_change(cols.into(), rows.into(), 0, 0)
                .await
                .is_ok()
        };
        let mut earlier_sizes = sizes.clone();
        // Where a write fails, the reader learns of the end.
        let write = async {
            while let Some(bytes) = inputs.recv().await {
                // A resize precedes later input, which may be here before its notification.
                if earlier_sizes.has_changed().is_ok_and(|changed| changed) {
                    let size = *earlier_sizes.borrow_and_update();
                    if !set(size).await {
                        break;
                    }
                }
                if writer.data_bytes(bytes).await.is_err() {
                    break;
                }
            }
            std::future::pending::<TerminalEnd>().await
        };
        // Input that the shell does not read delays no resize.
        let resize = async {
            while sizes.changed().await.is_ok() {
                let size = *sizes.borrow_and_update();
                if !set(size).await {
                    break;
                }
            }
            std::future::pending::<TerminalEnd>().await
        };
        // The answers to keepalives are no output.
        let allow = async {
            loop {
                self.allowance.renew();
                tokio::time::sleep(KEEPALIVE).await;
            }
        };
        tokio::select! {
            end = resize => end,
            end = write => end,
            end = allow => end,
            end = read(&mut self.output, output, &self.allowance) => end,
        }
    }
}

/// Reads the output of the shell to its end.
async fn read(shell: &mut ChannelReadHalf, output: &Output, allowance: &Allowance) -> TerminalEnd {
    let mut exit = None;
    while let Some(message) = shell.wait().await {
        allowance.renew();
        match message {
            ChannelMsg::Data { data } | ChannelMsg::ExtendedData { data, .. } => {
                output.put(&data).await;
            }
            ChannelMsg::ExitStatus { exit_status } => {
                exit = Some(TerminalEnd::Exited(Some(exit_status)));
            }
            ChannelMsg::ExitSignal { .. } => exit = Some(TerminalEnd::Exited(None)),
            _ => {}
        }
    }
    exit.unwrap_or(TerminalEnd::Lost)
}

async fn begin(
    connection: &Handle<HostKeyCheck>,
    TerminalSize { cols, rows }: TerminalSize,
) -> Result<(ChannelReadHalf, ChannelWriteHalf<client::Msg>), russh::Error> {
    let channel = connection.channel_open_session().await?;
    let (mut output, input) = channel.split();
    // Backspace erases whole characters of UTF-8.
    let modes = [(Pty::IUTF8, 1)];
    let (cols, rows) = (cols.into(), rows.into());
    (input.request_pty(true, TERM, cols, rows, 0, 0, &modes)).await?;
    input.request_shell(true).await?;
    let mut granted = 0;
    while granted < 2 {
        match output.wait().await {
            Some(ChannelMsg::Success) => granted += 1,
            Some(ChannelMsg::Failure) => return Err(russh::Error::RequestDenied),
            Some(_) => {}
            None => return Err(russh::Error::Disconnect),
        }
    }
    Ok((output, input))
}

/// The end for the client; the error is for the operator.
fn failed(error: &russh::Error, end: TerminalEnd) -> TerminalEnd {
    tracing::debug!(%error, ?end, "no terminal was opened");
    end
}

//! A shell over SSH, as OpenSSH's client opens it.

use super::dial::Allowance;
use super::login::{Connection, HostKeyCheck, KEEPALIVE, SshTarget, failed};
use super::output::Output;
use super::{TerminalEnd, TerminalSize};
use bytes::Bytes;
use russh::client::{self, Handle};
use russh::{ChannelMsg, ChannelReadHalf, ChannelWriteHalf, Pty};
use tokio::sync::{mpsc, watch};

/// The type of terminal that browsers' terminals emulate.
const TERM: &str = "xterm-256color";

/// A shell with a terminal.
pub struct Shell {
    connection: Connection,
    output: ChannelReadHalf,
    input: ChannelWriteHalf<client::Msg>,
}

impl Shell {
    /// Opens a shell.
    pub async fn open(target: SshTarget, size: TerminalSize) -> Result<Self, TerminalEnd> {
        let connection = Connection::open(target).await?;
        let opened = begin(&connection.handle, size).await;
        let (output, input) = opened.map_err(|error| failed(&error, TerminalEnd::NoShell))?;
        Ok(Self {
            connection,
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
        let allowance = &self.connection.allowance;
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
                allowance.renew();
                tokio::time::sleep(KEEPALIVE).await;
            }
        };
        tokio::select! {
            end = resize => end,
            end = write => end,
            end = allow => end,
            end = read(&mut self.output, output, allowance) => end,
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

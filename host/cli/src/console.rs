//! `wharf console`: a terminal through the server, which needs no SSH port and no key.

use crate::connection::InstanceArgs;
use crate::events::is_temporary;
use crate::failure::Failure;
use crate::output::note;
use anyhow::{Context, Result, bail};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::cell::Cell;
use std::io::{IsTerminal, Read, Write, stdin, stdout};
use std::time::{Duration, Instant};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{self, Receiver};
use wharf_client::{
    Client, Error as ClientError, TerminalEvent, TerminalInput, TerminalOutput, WindowSize,
};

/// Ctrl-], which ends the terminal.
const END: u8 = 0x1d;
/// The exit code of a shell that a signal ended.
const SIGNALLED: i32 = 255;
/// The server keeps a terminal without a client for this time.
const KEPT: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_secs(1);
/// Reads of the keyboard that wait for the server.
const WAITING: usize = 16;

/// The end of one connection to a terminal.
enum ConnectionEnd {
    Exited(Option<u32>),
    Failed(String),
    Closed,
    Lost,
}

pub async fn open(InstanceArgs { name, connection }: &InstanceArgs) -> Result<()> {
    if !stdin().is_terminal() || !stdout().is_terminal() {
        let message = format!(
            "stdin and stdout must be a terminal; `wharf ssh {name} -- COMMAND` runs a command"
        );
        return Err(Failure::Usage(message).into());
    }
    let client = connection.client()?;
    let mut keys = keyboard();
    let (mut input, mut output) = client.open_terminal(name, size(), None).await?;
    loop {
        match attached(&mut input, &mut output, &mut keys).await? {
            ConnectionEnd::Exited(code) => {
                let code = code.map_or(SIGNALLED, |code| code.try_into().unwrap_or(SIGNALLED));
                // The exit code is that of the shell, as with `wharf ssh`.
                std::process::exit(code);
            }
            ConnectionEnd::Failed(words) => bail!(words),
            ConnectionEnd::Closed => return Ok(()),
            ConnectionEnd::Lost => {
                note("The connection is lost; attaching again. Ctrl-C gives up.")
            }
        }
        let session = output.session().to_owned();
        (input, output) = attach_again(&client, name, &session).await?;
        if output.session() != session {
            note("The terminal has ended. This is a new one.");
        }
    }
}

async fn attach_again(
    client: &Client,
    name: &str,
    session: &str,
) -> Result<(TerminalInput, TerminalOutput)> {
    let begin = Instant::now();
    loop {
        match client.open_terminal(name, size(), Some(session)).await {
            Err(error) if is_temporary(&error) && begin.elapsed() < KEPT => {
                tokio::time::sleep(PAUSE).await;
            }
            attached => return Ok(attached?),
        }
    }
}

/// Passes bytes in both directions until the terminal or its connection ends.
async fn attached(
    input: &mut TerminalInput,
    output: &mut TerminalOutput,
    keys: &mut Receiver<Vec<u8>>,
) -> Result<ConnectionEnd> {
    let mut resizes = signal(SignalKind::window_change()).context("signals")?;
    let _raw = Raw::enter()?;
    // Keys of the time without a connection, and answers of this terminal to queries in the replay, are
    // not for the shell.
    while keys.try_recv().is_ok() {}
    let is_replaying = Cell::new(output.replayed() > 0);
    if is_replaying.get() {
        // Reset the screen, because the replay draws it again.
        stdout().write_all(b"\x1bc")?;
    }
    tokio::select! {
        end = show(output, &is_replaying) => end,
        _ = forward(input, keys, &mut resizes, &is_replaying) => Ok(ConnectionEnd::Lost),
    }
}

async fn show(output: &mut TerminalOutput, is_replaying: &Cell<bool>) -> Result<ConnectionEnd> {
    let mut shown = 0;
    loop {
        let bytes = match output.next().await {
            Ok(Some(TerminalEvent::Output(bytes))) => bytes,
            Ok(Some(TerminalEvent::Exited(code))) => return Ok(ConnectionEnd::Exited(code)),
            Ok(Some(TerminalEvent::Failed(words))) => return Ok(ConnectionEnd::Failed(words)),
            Ok(None) => return Ok(ConnectionEnd::Closed),
            Ok(Some(_)) => continue,
            Err(_) => return Ok(ConnectionEnd::Lost),
        };
        let mut screen = stdout().lock();
        screen.write_all(&bytes)?;
        screen.flush()?;
        shown += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        is_replaying.set(shown < output.replayed());
    }
}

/// Returns when the connection is lost.
async fn forward(
    input: &mut TerminalInput,
    keys: &mut Receiver<Vec<u8>>,
    resizes: &mut Signal,
    is_replaying: &Cell<bool>,
) -> Result<(), ClientError> {
    loop {
        tokio::select! {
            bytes = keys.recv() => match bytes {
                Some(bytes) if bytes == [END] => input.end().await?,
                Some(bytes) if !is_replaying.get() => input.write(&bytes).await?,
                Some(_) => {}
                None => {
                    input.end().await?;
                    std::future::pending().await
                }
            },
            _ = resizes.recv() => input.resize(size()).await?,
        }
    }
}

/// Reads the keyboard in a thread, because a read cannot be cancelled.
fn keyboard() -> Receiver<Vec<u8>> {
    let (sender, keys) = mpsc::channel(WAITING);
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = stdin().read(&mut buffer) {
            let bytes = buffer.get(..length).unwrap_or_default().to_vec();
            if sender.blocking_send(bytes).is_err() {
                return;
            }
        }
    });
    keys
}

/// The size of the terminal.
fn size() -> WindowSize {
    let (cols, rows) = match tcgetwinsize(stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col, size.ws_row),
        _ => (80, 24),
    };
    WindowSize {
        cols: cols.min(1000),
        rows: rows.min(1000),
    }
}

/// The raw mode of the terminal, in which each key goes to the shell. Dropping it restores the mode.
struct Raw(Termios);

impl Raw {
    fn enter() -> Result<Self> {
        let before = tcgetattr(stdin()).context("the terminal")?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(stdin(), OptionalActions::Drain, &raw).context("the terminal")?;
        Ok(Self(before))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = tcsetattr(stdin(), OptionalActions::Drain, &self.0);
    }
}

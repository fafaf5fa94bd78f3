//! One terminal: its shell, and the channels to and from its client.

use super::login::SshTarget;
use super::output::Output;
use super::shell::Shell;
use super::terminals::Opener;
use super::{TerminalEnd, TerminalSize};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, mpsc, watch};

/// Time to reach the SSH server, sign in and open a shell.
const OPEN_TIMEOUT: Duration = Duration::from_secs(20);

/// Time for a lost connection to get a better reason, such as that the instance was stopped. Longer
/// than the interval between two calls of [`Terminals::sweep`](super::Terminals::sweep).
const REASON_TIMEOUT: Duration = Duration::from_secs(1);

/// Pieces of input that wait for the shell.
const INPUTS: usize = 1;

/// One terminal.
#[derive(Debug)]
pub struct Session {
    pub id: String,
    pub opener: Opener,
    pub output: Output,
    pub input: mpsc::Sender<Bytes>,
    pub size: watch::Sender<TerminalSize>,
    /// Notified at the end.
    ended: Notify,
}

/// The receivers of a terminal that has not begun.
#[derive(Debug)]
pub struct Receivers {
    input: mpsc::Receiver<Bytes>,
    size: watch::Receiver<TerminalSize>,
}

impl Session {
    pub fn new(id: String, opener: Opener, size: TerminalSize) -> (Arc<Self>, Receivers) {
        let (input, inputs) = mpsc::channel(INPUTS);
        let (size, sizes) = watch::channel(size);
        let session = Self {
            id,
            opener,
            output: Output::default(),
            input,
            size,
            ended: Notify::new(),
        };
        let receivers = Receivers {
            input: inputs,
            size: sizes,
        };
        (Arc::new(session), receivers)
    }

    /// Ends the terminal; its client learns of the first end only.
    pub fn end(&self, end: TerminalEnd) {
        self.output.end(end);
        self.ended.notify_one();
    }

    /// Runs the shell to its end.
    pub async fn run(&self, target: SshTarget, receivers: Receivers) {
        let end = tokio::select! {
            end = self.serve(target, receivers) => end,
            () = self.ended.notified() => return,
        };
        if end == TerminalEnd::Lost {
            let _ = tokio::time::timeout(REASON_TIMEOUT, self.ended.notified()).await;
        }
        // An earlier end stays.
        self.output.end(end);
    }

    async fn serve(&self, target: SshTarget, mut receivers: Receivers) -> TerminalEnd {
        let size = *receivers.size.borrow_and_update();
        let mut shell = match tokio::time::timeout(OPEN_TIMEOUT, Shell::open(target, size)).await {
            Ok(Ok(shell)) => shell,
            Ok(Err(end)) => return end,
            Err(_) => return TerminalEnd::Unreachable,
        };
        let Receivers { input, size } = receivers;
        shell.run(&self.output, input, size).await
    }
}

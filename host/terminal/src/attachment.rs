//! A client that is attached to a terminal.

use super::output::NextOutput;
use super::session::Session;
use super::terminals::Terminals;
use super::{TerminalEnd, TerminalSize};
use bytes::Bytes;
use std::sync::Arc;

/// The attachment of a client. The terminal runs on when it is dropped, unless it has ended.
#[derive(Debug)]
pub struct TerminalAttachment {
    terminals: Arc<Terminals>,
    session: Arc<Session>,
    number: u64,
    replayed: u64,
}

/// An event for a client.
#[derive(Debug, PartialEq, Eq)]
pub enum AttachmentEvent {
    /// The terminal has written bytes.
    Output(Bytes),
    /// The terminal has ended.
    End(TerminalEnd),
    /// Another client is attached in place of this one.
    Replaced,
}

impl From<NextOutput> for AttachmentEvent {
    fn from(next: NextOutput) -> Self {
        match next {
            NextOutput::Bytes(bytes) => Self::Output(bytes),
            NextOutput::End(end) => Self::End(end),
            NextOutput::Replaced => Self::Replaced,
        }
    }
}

impl TerminalAttachment {
    pub(super) fn new(terminals: Arc<Terminals>, session: Arc<Session>) -> Self {
        let (number, replayed) = session.output.attach();
        Self {
            terminals,
            session,
            number,
            replayed,
        }
    }

    /// The id by which a client attaches again.
    pub fn session(&self) -> &str {
        &self.session.id
    }

    /// The number of bytes at the beginning that were written before.
    pub fn replayed(&self) -> u64 {
        self.replayed
    }

    /// Waits for the next event.
    pub async fn next(&self) -> AttachmentEvent {
        self.session.output.next(self.number).await.into()
    }

    /// Waits for an event that does not wait until the client has read earlier ones.
    pub async fn cut(&self) -> AttachmentEvent {
        self.session.output.cut(self.number).await.into()
    }

    /// Sends bytes to the shell. Waits while the shell does not read; false if it has ended.
    pub async fn input(&self, bytes: Bytes) -> bool {
        self.session.input.send(bytes).await.is_ok()
    }

    /// Sets the size of the terminal.
    pub fn resize(&self, size: TerminalSize) {
        self.session.size.send_replace(size);
    }

    /// Ends the terminal.
    pub fn end(&self) {
        self.session.end(TerminalEnd::Closed);
    }
}

impl Drop for TerminalAttachment {
    fn drop(&mut self) {
        self.session.output.detach(self.number);
        if self.session.output.has_ended() {
            self.terminals.remove_unattended(&self.session);
        }
    }
}

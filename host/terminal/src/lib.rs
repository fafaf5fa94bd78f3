//! Terminals of instances: a shell over SSH, with the last part of its output, that outlives the
//! connection of its client.
//!
//! [`Terminals`] has all of them. `session` runs one, `shell` speaks SSH, and `output` connects its
//! output with the client that is attached.

mod attachment;
mod dial;
mod end;
mod output;
mod session;
mod shell;
mod terminals;

pub use attachment::{Attachment, AttachmentEvent};
pub use dial::{Hangup, dial};
pub use end::TerminalEnd;
pub use shell::{IsKnown, SshTarget, host_key};
pub use terminals::{Admitted, Opener, TerminalBounds, Terminals, TerminalsFull};

/// The size of a terminal in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalSize {
    pub cols: u16,
    pub rows: u16,
}

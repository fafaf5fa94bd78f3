//! Terminals and tunnels of instances. A terminal is a shell over SSH, with the last part of its output,
//! that outlives the connection of its client. A tunnel is a connection to a port.
//!
//! [`Terminals`] has all terminals. `session` runs one, `shell` speaks SSH, and `output` connects its
//! output with the client that is attached. [`Tunnels`] has the permits of all tunnels, and [`InstancePorts`] the
//! SSH connections through which they reach ports inside. `login` is that of both.

mod attachment;
mod dial;
mod end;
mod login;
mod output;
mod ports;
mod session;
mod shell;
mod stream;
mod terminals;
mod tunnels;

pub use attachment::{AttachmentEvent, TerminalAttachment};
pub use dial::{Hangup, dial};
pub use end::TerminalEnd;
pub use login::{IsKnown, SshTarget, host_key};
pub use ports::{InstancePorts, PortUnreached, PortUser};
pub use stream::{PortReader, PortWriter};
pub use terminals::{AdmittedTerminal, Opener, OverLimit, TerminalBounds, Terminals};
pub use tunnels::{TunnelPermit, Tunnels};

/// The size of a terminal in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalSize {
    pub cols: u16,
    pub rows: u16,
}

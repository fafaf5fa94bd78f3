//! The end of a terminal.

/// The reason for which a terminal has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminalEnd {
    /// The shell has ended, with this code unless a signal ended it.
    Exited(Option<u32>),
    /// The SSH server of the instance could not be reached.
    Unreachable,
    /// The SSH server has a host key that is not known.
    HostKey,
    /// The SSH server refused the password.
    Password,
    /// The SSH server opened no shell.
    NoShell,
    /// The connection to the SSH server broke.
    Lost,
    /// The client ended the terminal.
    Closed,
    /// No client was attached for too long.
    Unattended,
    /// The key or the session that opened the terminal is not valid any more.
    Access,
    /// The instance is not running any more.
    NotRunning,
    /// The service stops.
    Shutdown,
}

impl TerminalEnd {
    /// Whether the client gets the output that it has not received before it learns of the end.
    pub(super) fn comes_after_output(self) -> bool {
        match self {
            Self::Exited(_) | Self::Lost | Self::NotRunning => true,
            Self::Unreachable
            | Self::HostKey
            | Self::Password
            | Self::NoShell
            | Self::Closed
            | Self::Unattended
            | Self::Access
            | Self::Shutdown => false,
        }
    }
}

//! The kinds of private engine.

use std::fmt;

/// An engine, and the release of Debian whose package it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The machine's own docker.io.
    Dockerd,
    /// Podman 4.3, of Debian 12.
    Podman4,
    /// Podman 5.4, of Debian 13.
    Podman5,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Dockerd, Self::Podman4, Self::Podman5];

    /// The name, one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dockerd => "dockerd",
            Self::Podman4 => "podman-4",
            Self::Podman5 => "podman-5",
        }
    }

    /// Whether root inside an instance is an account without rights on the node. dockerd is configured so;
    /// Podman 5 is asked to by the driver; Podman 4.3 would hang.
    pub fn remaps_root(self) -> bool {
        self != Self::Podman4
    }

    /// Whether this is a Podman.
    pub fn is_podman(self) -> bool {
        self != Self::Dockerd
    }

    /// The release of Debian with this Podman.
    pub(super) fn suite(self) -> Option<&'static str> {
        match self {
            Self::Dockerd => None,
            Self::Podman4 => Some("bookworm"),
            Self::Podman5 => Some("trixie"),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

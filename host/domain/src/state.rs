//! The states of an instance, by section 3 of the specification.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The state of an instance as its user sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InstanceState {
    /// The instance is being created and has not been reachable yet.
    Provisioning,
    /// The instance runs or restarts.
    Running,
    /// A stopped VM.
    ShutOff,
    /// A stopped container.
    Exited,
    /// Provisioning failed.
    Error,
    /// The user deleted the instance.
    Deleted,
}

/// The billed parts of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Billed {
    /// Whether vCPUs, RAM and GPUs are billed.
    pub compute: bool,
    /// Whether the disk is billed.
    pub storage: bool,
}

impl InstanceState {
    /// Returns the parts that are billed in the state.
    pub fn billed(self) -> Billed {
        let (compute, storage) = match self {
            Self::Provisioning | Self::Running => (true, true),
            Self::ShutOff | Self::Exited => (false, true),
            Self::Error | Self::Deleted => (false, false),
        };
        Billed { compute, storage }
    }

    /// Returns the spelling of the REST interface.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Provisioning => "provisioning",
            Self::Running => "running",
            Self::ShutOff => "shut_off",
            Self::Exited => "exited",
            Self::Error => "error",
            Self::Deleted => "deleted",
        }
    }
}

impl fmt::Display for InstanceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

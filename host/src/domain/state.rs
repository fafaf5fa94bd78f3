//! Section 3 of the specification, as one match.

use super::instance::{Instance, Intent, ResourceType};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a user sees of where an instance is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InstanceState {
    /// Being made; never reachable yet.
    Provisioning,
    /// Up, or on its way back up.
    Running,
    /// A stopped VM.
    ShutOff,
    /// A stopped container.
    Exited,
    /// It could not be made.
    Error,
    /// Gone for its user.
    Deleted,
}

/// What is billed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Billed {
    /// vCPUs, RAM and GPUs.
    pub compute: bool,
    /// Disk.
    pub storage: bool,
}

impl InstanceState {
    /// The state that follows from what was asked for and what was seen.
    ///
    /// The user's intent decides: it is shown as soon as it is durable.
    pub fn of(instance: &Instance) -> Self {
        match (instance.intent, instance.failed, instance.resource_type) {
            (Intent::Delete, _, _) => Self::Deleted,
            (_, true, _) => Self::Error,
            (Intent::Run, false, _) if instance.provisioned => Self::Running,
            (Intent::Run, false, _) => Self::Provisioning,
            (Intent::Stop, false, ResourceType::Vm) => Self::ShutOff,
            (Intent::Stop, false, ResourceType::Container) => Self::Exited,
        }
    }

    /// The billing table.
    pub fn billed(self) -> Billed {
        let (compute, storage) = match self {
            Self::Provisioning | Self::Running => (true, true),
            Self::ShutOff | Self::Exited => (false, true),
            Self::Error | Self::Deleted => (false, false),
        };
        Billed { compute, storage }
    }

    /// As the wire spells it.
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

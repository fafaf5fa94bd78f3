//! The settings of a simulated node.

use super::api::Call;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

/// A simulated node's `settings`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Time from start to ready, in milliseconds.
    pub ready_after_ms: u64,
    /// Latency of each request.
    pub latency_ms: Latency,
    /// Seed of the latencies, which are a function of it and of the sequence of calls.
    pub seed: u64,
    /// The capacity; unlimited and unreported if absent.
    pub capacity: Option<Capacity>,
    /// The node's GPUs.
    pub gpus: Vec<Gpu>,
    /// When the disk of an existing machine can grow.
    pub disk_grow: DiskGrow,
    /// Whether a running machine keeps its CPUs and RAM.
    pub fixed_while_running: bool,
    /// Scripted faults, of which the first that matches a call happens.
    pub faults: Vec<FaultRule>,
}

/// Milliseconds: a fixed number or a range.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged)]
pub enum Latency {
    /// Fixed.
    Fixed(u64),
    /// From, to, both included.
    Between(u64, u64),
}

/// See [`Settings::disk_grow`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DiskGrow {
    /// Never.
    No,
    /// While it is stopped: its next start grows the disk first.
    Stopped,
    /// At any time.
    #[default]
    Running,
}

/// The capacity of a node.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capacity {
    /// Of running machines together.
    pub n_vcpus: u32,
    /// Of running machines together.
    pub mem_gib: u32,
    /// Of all machines together.
    pub disk_size_gib: u32,
}

/// One GPU.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gpu {
    /// Its model.
    pub model: String,
    /// Its name on the engine.
    pub device: String,
}

/// A scripted fault. Without `nth` and `every` it happens at each call.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultRule {
    /// The function at which it happens.
    pub call: Call,
    /// The number of the call at which it happens, counted from 1.
    pub nth: Option<u64>,
    /// The interval of calls at which it happens.
    pub every: Option<u64>,
    /// The host name of the only instance for which it happens.
    pub hostname: Option<String>,
    /// The kind of fault.
    pub error: Fault,
    /// The time of the faults that have one.
    #[serde(default)]
    pub after_ms: u32,
}

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The connection is refused; nothing is done.
    Unreachable,
    /// The request is done, and the connection breaks before the answer.
    Lost,
    /// The request is done and never answered.
    Timeout,
    /// The engine answers with an error; nothing is done.
    Error,
    /// The engine asks for a retry after `after_ms`; nothing is done.
    Retry,
    /// The request is done and answered after `after_ms`.
    Late,
    /// The content does not fit onto the larger disk; the machine keeps its disk.
    Full,
    /// The machine is created and never comes up.
    Failed,
    /// The machine runs and ends by itself after `after_ms`.
    Dies,
}

impl Settings {
    /// Parses the settings; unknown keys are errors.
    pub fn read(value: &Value) -> Result<Self, serde_json::Error> {
        if value.is_null() {
            Ok(Self::default())
        } else {
            Self::deserialize(value)
        }
    }
}

impl Default for Latency {
    fn default() -> Self {
        Self::Fixed(0)
    }
}

impl Latency {
    /// The latency for a random number.
    pub fn pick(self, roll: u64) -> Duration {
        Duration::from_millis(match self {
            Self::Fixed(ms) => ms,
            Self::Between(from, to) => from + roll % (to.saturating_sub(from) + 1),
        })
    }
}

impl FaultRule {
    /// Whether it matches this call. `hostname` is called only if needed.
    pub fn hits(&self, call: Call, nth: u64, hostname: &dyn Fn() -> Option<String>) -> bool {
        self.call == call
            && self.nth.is_none_or(|wanted| wanted == nth)
            && self
                .every
                .is_none_or(|every| every != 0 && nth.is_multiple_of(every))
            && self
                .hostname
                .as_ref()
                .is_none_or(|wanted| hostname().as_ref() == Some(wanted))
    }
}

//! How a simulated node behaves.

use super::api::Call;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

/// A simulated node's `settings`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// From start to ready, in milliseconds.
    pub ready_after_ms: u64,
    /// How long each request takes.
    pub latency_ms: Latency,
    /// Chooses among latencies; the same seed makes the same choices for the same sequence of calls.
    pub seed: u64,
    /// What the node has. Unlimited, and not told, without it.
    pub capacity: Option<Capacity>,
    /// The node's GPUs.
    pub gpus: Vec<Gpu>,
    /// When the disk of a machine that exists can grow.
    pub disk_grow: DiskGrow,
    /// A machine that runs keeps its processors and its memory.
    pub fixed_while_running: bool,
    /// Scripted failures; the first that fits a call happens.
    pub faults: Vec<FaultRule>,
}

/// Milliseconds: always so many, or any number in a range.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged)]
pub enum Latency {
    /// Always.
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
    /// While it does not run: its next start has a step before it.
    Stopped,
    /// At any time.
    #[default]
    Running,
}

/// What a node has in all.
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

/// When something goes wrong. Without `nth` and `every`: at each call.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultRule {
    /// At which of the driver's functions.
    pub call: Call,
    /// At the so-manieth call of it, counted from 1.
    pub nth: Option<u64>,
    /// At each so-manieth.
    pub every: Option<u64>,
    /// Only for the instance with this host name.
    pub hostname: Option<String>,
    /// What happens.
    pub error: Fault,
    /// For the faults that have a time.
    #[serde(default)]
    pub after_ms: u32,
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// No connection; nothing is done.
    Unreachable,
    /// It is done, and the connection breaks before the answer.
    Lost,
    /// It is done, and no answer ever comes.
    Timeout,
    /// The engine answers with an error; nothing is done.
    Error,
    /// The engine asks to come back `after_ms` later; nothing is done.
    Retry,
    /// It is done only `after_ms` later, and answered then.
    Late,
    /// Its content does not fit onto the larger disk; it keeps the one it has.
    Full,
    /// The machine is made and will never come up.
    Failed,
    /// The machine runs and ends by itself `after_ms` later.
    Dies,
}

impl Settings {
    /// Reads them; unknown keys are errors.
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
    /// One latency, by a roll of the dice.
    pub fn pick(self, roll: u64) -> Duration {
        Duration::from_millis(match self {
            Self::Fixed(ms) => ms,
            Self::Between(from, to) => from + roll % (to.saturating_sub(from) + 1),
        })
    }
}

impl FaultRule {
    /// Whether it fits this call. `hostname` is looked up only where it matters.
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

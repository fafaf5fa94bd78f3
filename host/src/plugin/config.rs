//! What the runtime is told at start.

use crate::domain::ids::NodeId;
use crate::engine::Transport;
use std::path::PathBuf;
use std::time::Duration;

/// Where plugins come from and what they may use.
#[derive(Debug, Clone)]
pub struct PluginsConfig {
    /// Directory for compiled components. Made if missing; must be writable by this user only.
    pub cache_dir: PathBuf,
    /// Directory of `driver-*.wasm` and `flavors-*.wasm` that add to or replace the embedded ones.
    pub plugins_dir: Option<PathBuf>,
    /// Limits of every call.
    pub limits: Limits,
}

/// Limits of one call of a plugin, and of all of them together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Linear memory of a guest, bytes. At most 64 MiB, the size of a pool slot.
    pub memory: usize,
    /// Time that a call computes, waiting left out. A choice, not a measurement: calls of the shipped drivers take
    /// microseconds, and a guest that runs away must not hold a core for long.
    pub cpu: Duration,
    /// Wall-clock time of a call, waiting for the engine included; `stop` adds its grace.
    pub wall: Duration,
    /// Guests alive at once in this process.
    pub guests: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: 64 << 20,
            cpu: Duration::from_secs(2),
            wall: Duration::from_secs(30),
            guests: 256,
        }
    }
}

/// How many calls of one node run and wait at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeLimits {
    /// Calls that change something, at once. Engines work them off a few at a time anyway.
    pub changes: usize,
    /// Calls that only read, at once; apart, so that a long stop never delays them.
    pub reads: usize,
    /// Calls that may wait, of each sort. One more is refused as busy.
    pub waiting: usize,
    /// Longest wait before a call is refused as busy.
    pub wait: Duration,
}

impl Default for NodeLimits {
    fn default() -> Self {
        Self {
            changes: 32,
            reads: 8,
            waiting: 1024,
            wait: Duration::from_secs(30),
        }
    }
}

/// One node, as its driver needs it.
#[derive(Debug, Clone)]
pub struct NodeConfig {
    /// The node's name.
    pub name: NodeId,
    /// Which driver: `docker` is the plugin `driver-docker`.
    pub driver: String,
    /// Names this installation on everything a driver makes.
    pub installation: String,
    /// The transport to the node's engine.
    pub transport: Transport,
    /// The node's `settings` table.
    pub settings: serde_json::Value,
    /// Queue sizes.
    pub limits: NodeLimits,
}

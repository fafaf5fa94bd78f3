//! Settings of the plugin runtime.

use super::own::OwnFlavor;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use wharf_domain::ids::NodeId;
use wharf_engine::Transport;

/// The sources and limits of plugins.
#[derive(Debug, Clone)]
pub struct PluginsConfig {
    /// The use of compiled components.
    pub cache: CacheUse,
    /// Directory of the compiled components that came with the program.
    pub shipped: Option<PathBuf>,
    /// Directory of `driver-*.wasm` and `flavors-*.wasm` that add to or replace the embedded ones.
    pub plugins_dir: Option<PathBuf>,
    /// Hashes by file name, `sha256:` and hexadecimal digits. With any, each plugin of the directory
    /// needs one.
    pub pins: BTreeMap<String, String>,
    /// Flavors of the operator's, beside those of providers.
    pub flavors: Vec<OwnFlavor>,
    /// Limits of every call.
    pub limits: CallLimits,
}

/// The use of a directory of compiled components, which only this user may write to.
#[derive(Debug, Clone)]
pub enum CacheUse {
    /// Components are read from the directory, and kept there. It is made if it is missing.
    Keep(PathBuf),
    /// Components are read from the directory, and nothing is written.
    Read(PathBuf),
}

/// Limits of one call of a plugin, and of all of them together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallLimits {
    /// Linear memory of a guest, bytes. At most 64 MiB, the size of a pool slot.
    pub memory: usize,
    /// CPU time of a call. A choice, not a measurement: calls of the shipped drivers take microseconds,
    /// and an endless loop must not hold a core for long.
    pub cpu: Duration,
    /// Wall-clock time of a call, waiting for the engine included; `stop` adds its grace.
    pub wall: Duration,
    /// Most guests in this process at once.
    pub guests: u32,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self {
            memory: 64 << 20,
            cpu: Duration::from_secs(2),
            wall: Duration::from_secs(90),
            guests: 256,
        }
    }
}

/// Bounds on the calls for one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeLimits {
    /// Most changing calls at once.
    pub changes: usize,
    /// Most reading calls at once. They have a queue of their own, so that a long stop does not delay
    /// them.
    pub reads: usize,
    /// Most readings of the usage at once. They have a queue of their own, so that readings that a busy
    /// engine delays do not delay its observation.
    pub usage: usize,
    /// Most waiting calls in each queue. Further calls are refused as busy.
    pub waiting: usize,
    /// Longest wait before a call is refused as busy.
    pub wait: Duration,
}

impl Default for NodeLimits {
    fn default() -> Self {
        Self {
            changes: 32,
            reads: 8,
            usage: 16,
            // Room for the creates of a whole class at once.
            waiting: 4096,
            wait: Duration::from_secs(30),
        }
    }
}

/// The settings of one node.
#[derive(Debug, Clone)]
pub struct DriverNodeConfig {
    /// The node's name.
    pub name: NodeId,
    /// The driver: `docker` is the plugin `driver-docker`.
    pub driver: String,
    /// The name of this installation, on every engine object.
    pub installation: String,
    /// The transport to the node's engine.
    pub transport: Transport,
    /// The node's `settings` table.
    pub settings: serde_json::Value,
    /// Queue sizes.
    pub limits: NodeLimits,
}

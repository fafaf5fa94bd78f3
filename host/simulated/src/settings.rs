//! The settings of a simulated node.

use super::api::Call;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The `settings` of a simulated node.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Time in ms from a start until the machine is ready. Default 0.
    pub ready_after_ms: u64,
    /// Latency of each request. Default 0.
    pub latency_ms: Latency,
    /// Seed of the random latencies. A seed gives equal latencies for equal sequences of calls.
    /// Default 0.
    pub seed: u64,
    /// Time in ms that the move of a machine to this node takes. Default 0.
    pub move_ms: u64,
    /// Total resources of the node. Default: unlimited, and not reported.
    pub capacity: Option<SimulatedCapacity>,
    /// GPUs of the node. Default: none.
    pub gpus: Vec<SimulatedGpu>,
    /// When the disk of an existing machine can grow. Default: at any time.
    pub disk_grow: DiskGrowSetting,
    /// Whether running machines refuse changes of vCPUs and RAM. Default false.
    pub fixed_while_running: bool,
    /// Whether the node makes volumes. Default true.
    pub volumes: OnByDefault,
    /// Time in ms from a request for a volume until it is ready. Default 0.
    pub volume_ms: u64,
    /// The reason for which every request for a volume fails. Default: none.
    pub refuse_volumes: Option<String>,
    /// A file: while it exists, the engine lists no volumes. Default: none.
    pub lose_volumes_while: Option<PathBuf>,
    /// A file: while it exists, the engine does not hold the sizes of disks. Default: none.
    pub break_limits_while: Option<PathBuf>,
    /// Whether machines get and lose volumes after their creation. Default false.
    pub late_attach: bool,
    /// Whether the content of machines moves to and from other engines. Default false.
    pub content: bool,
    /// When the node sends the content of volumes: `none`, `at_rest` or `at_any_time`. Default `none`.
    pub volume_content: VolumeContentSetting,
    /// How the node takes snapshots. Default: they share the blocks of the disk.
    pub snapshots: SnapshotSetting,
    /// Time in ms from a request for a snapshot until it is complete. Default 0.
    pub snapshot_ms: u64,
    /// Time in ms that the restore of a machine takes. Default 0.
    pub restore_ms: u64,
    /// The reason for which every request for a snapshot fails. Default: none.
    pub refuse_snapshots: Option<String>,
    /// A file: while it exists, the engine lists no snapshots. Default: none.
    pub lose_snapshots_while: Option<PathBuf>,
    /// Whether machines can be made from the snapshots. Default true.
    pub snapshots_clonable: OnByDefault,
    /// Address of public ports, on which no machine listens. Only the host reads it. Default: `0.0.0.0`.
    pub publish_address: Option<IpAddr>,
    /// Images that the engine does not have. Default: none.
    pub missing_images: Vec<String>,
    /// Images without the label of an SSH server. Default: none.
    pub images_without_ssh: Vec<String>,
    /// Contents of images for users, by reference. Default: none.
    pub image_contents: BTreeMap<String, String>,
    /// A file: while it exists, the engine has all images. Default: none.
    pub images_while: Option<PathBuf>,
    /// A file: while it exists, the engine is out of reach. Default: none.
    pub unreachable_while: Option<PathBuf>,
    /// A file: while it exists, the engine accepts requests and answers none. Default: none.
    pub silent_while: Option<PathBuf>,
    /// A file: while it exists, the engine runs on another store, which is empty at first. A real engine
    /// does so before its data disk is mounted. Default: none.
    pub other_store_while: Option<PathBuf>,
    /// A file of ports, addresses and GPU devices, a line each, that something else than the machines
    /// holds. The beginning of addresses up to a dot is their network. Default: none.
    pub held_in: Option<PathBuf>,
    /// Scripted faults; the first rule that matches a call applies. Default: none.
    pub faults: Vec<FaultRule>,
}

/// A setting that is true unless it is given.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct OnByDefault(pub bool);

impl Default for OnByDefault {
    fn default() -> Self {
        Self(true)
    }
}

/// A latency in ms.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged)]
pub enum Latency {
    /// A constant latency.
    Fixed(u64),
    /// A random latency in a range, both ends included.
    Between(u64, u64),
}

/// When a disk can grow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DiskGrowSetting {
    /// Never.
    No,
    /// While the machine is stopped. The next start then grows the disk first.
    Stopped,
    /// At any time.
    #[default]
    Running,
}

/// How a node takes snapshots.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SnapshotSetting {
    /// It takes none.
    None,
    /// They share the blocks of the disk, and go with their machine. A machine that was made from one needs
    /// it no longer.
    #[default]
    Shared,
    /// They are copies, and outlive their machine. One stays while a machine has its disk from it.
    Copied,
}

/// When a node sends the content of a volume.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VolumeContentSetting {
    /// Never.
    #[default]
    None,
    /// While no machine that runs writes it.
    AtRest,
    /// At any time.
    AtAnyTime,
}

/// The total resources of a node.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SimulatedCapacity {
    /// Number of vCPUs for all running machines.
    pub n_vcpus: u32,
    /// RAM in GiB for all running machines.
    pub mem_gib: u32,
    /// Disk in GiB for all machines.
    pub disk_size_gib: u32,
}

/// One GPU.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SimulatedGpu {
    pub model: String,
    /// Name of the device on the engine.
    pub device: String,
}

/// A scripted fault. Without `nth` and `every` it applies to each call.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultRule {
    /// Driver function to which the rule applies.
    pub call: Call,
    /// Number of the call to which the rule applies, from 1.
    pub nth: Option<u64>,
    /// Interval of calls at which the rule applies.
    pub every: Option<u64>,
    /// Host name of the only instance to which the rule applies.
    pub hostname: Option<String>,
    /// Fault to simulate.
    pub error: Fault,
    /// Time in ms for the faults that take one. Default 0.
    #[serde(default)]
    pub after_ms: u32,
}

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The connection fails, and the call has no effect.
    Unreachable,
    /// The call takes effect, and the connection breaks before the response.
    Lost,
    /// The call takes effect, and no response ever arrives.
    Timeout,
    /// The engine responds with an error, and the call has no effect.
    Error,
    /// The engine does not know the call.
    Unsupported,
    /// The engine asks for a retry after `after_ms`, and the call has no effect.
    Retry,
    /// The call takes effect after `after_ms`, and the response arrives then.
    Late,
    /// The engine has moved a part of the content to a larger disk, and asks for a call after `after_ms`.
    Partly,
    /// The content does not fit onto the larger disk, and the machine keeps its disk.
    Full,
    /// The machine is created and never becomes ready.
    Failed,
    /// The machine runs and ends by itself after `after_ms`.
    Dies,
}

impl Settings {
    /// The images that the engine does not have now.
    pub fn missing_images(&self) -> &[String] {
        if super::exists(self.images_while.as_deref()) {
            &[]
        } else {
            &self.missing_images
        }
    }

    /// The lines of the file of things that something else holds.
    pub fn held(&self) -> Vec<String> {
        let held = self.held_in.as_ref().map(std::fs::read_to_string);
        let held = held.and_then(Result::ok).unwrap_or_default();
        held.lines().map(str::to_owned).collect()
    }

    /// Parses the settings. Unknown keys are errors.
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
    /// Returns the latency for a random number.
    pub fn pick(self, roll: u64) -> Duration {
        Duration::from_millis(match self {
            Self::Fixed(ms) => ms,
            Self::Between(from, to) => from + roll % (to.saturating_sub(from) + 1),
        })
    }
}

impl FaultRule {
    /// Returns whether the rule applies to a call. `hostname` is only called if the rule needs it.
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

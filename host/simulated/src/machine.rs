//! A simulated container or virtual machine.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv4Addr};
use uuid::Uuid;

/// Milliseconds since 1970, or a duration in milliseconds.
pub type Millis = u64;

/// The reason of a machine that stopped without a request.
pub const ENDED: &str = "it ended by itself";

/// The specification that `ensure` receives.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MachineSpec {
    /// Id of the installation that owns the machine.
    pub installation: String,
    /// Number of this creation of the instance.
    pub incarnation: u64,
    /// Kind, `vm` or `container`.
    pub kind: String,
    pub hostname: String,
    pub image: String,
    pub address: Ipv4Addr,
    /// Ports of the node that are forwarded to the machine.
    pub node_ports: Vec<NodePort>,
    #[serde(default)]
    pub gpus: Vec<String>,
    #[serde(default)]
    pub mounts: Vec<SimulatedMount>,
    /// The snapshot from which its disk is made.
    #[serde(default)]
    pub source: Option<SimulatedSource>,
    #[serde(flatten)]
    pub size: MachineSize,
}

/// A snapshot, and the machine of which it is a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SimulatedSource {
    pub snapshot: Uuid,
    pub instance: Uuid,
    pub incarnation: u64,
}

/// A volume in a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SimulatedMount {
    pub volume: Uuid,
    pub path: String,
    pub read_only: bool,
}

/// A port of the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "WrittenPort")]
pub struct NodePort {
    /// The address on which it listens.
    pub address: IpAddr,
    /// Its number, which no other machine has at any address.
    pub port: u16,
}

/// A port as requests and files have it.
#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenPort {
    /// Files of earlier versions have public ports only.
    Public(u16),
    At {
        address: IpAddr,
        port: u16,
    },
}

impl From<WrittenPort> for NodePort {
    fn from(written: WrittenPort) -> Self {
        let (address, port) = match written {
            WrittenPort::Public(port) => (Ipv4Addr::UNSPECIFIED.into(), port),
            WrittenPort::At { address, port } => (address, port),
        };
        Self { address, port }
    }
}

/// The size of a machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineSize {
    /// Number of vCPUs.
    pub n_vcpus: u32,
    /// RAM in GiB.
    pub mem_gib: u32,
    /// Disk in GiB.
    pub disk_size_gib: u32,
}

/// A machine in a list, as incarnation, phase and detail.
pub type MachineRow<'a> = (u64, &'static str, Option<&'a str>);

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Machine {
    /// Specification with the current size.
    pub wanted: MachineSpec,
    /// Current state.
    pub life: MachineState,
    /// CPU time of earlier runs in ns.
    pub cpu_ns: u64,
    /// Open ports of a running virtual machine.
    #[serde(default)]
    pub ports: Vec<u16>,
    /// The snapshot from which its disk was made last.
    #[serde(default)]
    pub disk_of: Option<Uuid>,
    /// The snapshot whose content came here from outside.
    #[serde(default)]
    pub content_of: Option<Uuid>,
}

/// The content that leaves an engine and comes to another one.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Content {
    pub life: MachineState,
    pub cpu_ns: u64,
    #[serde(default)]
    pub disk_of: Option<Uuid>,
    #[serde(default)]
    pub content_of: Option<Uuid>,
}

/// The outcome of a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartOutcome {
    /// The machine runs.
    Lives,
    /// The machine never becomes ready.
    Fails,
    /// The machine ends by itself after a time.
    Dies(Millis),
}

/// The state of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum MachineState {
    /// The machine has never been started, and has content.
    Created,
    /// The machine runs.
    Running {
        /// Time of the start.
        since: Millis,
        /// Time at which the machine becomes ready.
        ready_at: Millis,
        /// Time at which the machine ends by itself.
        dies_at: Option<Millis>,
    },
    /// The machine is stopped, with a reason if it ended by itself.
    Stopped(Option<String>),
    /// The machine never becomes ready.
    Failed,
}

impl Machine {
    /// A machine with content that has come.
    pub fn with(content: Content, wanted: MachineSpec) -> Self {
        Self {
            wanted,
            life: content.life,
            cpu_ns: content.cpu_ns,
            ports: Vec::new(),
            disk_of: content.disk_of,
            content_of: content.content_of,
        }
    }

    /// Returns whether the machine has a specification. The size, the volumes and the source may differ, since
    /// they can change.
    pub fn is_as(&self, wanted: &MachineSpec) -> bool {
        let own = &self.wanted;
        own.installation == wanted.installation
            && own.incarnation == wanted.incarnation
            && own.kind == wanted.kind
            && own.hostname == wanted.hostname
            && own.image == wanted.image
            && own.address == wanted.address
            && own.node_ports == wanted.node_ports
            && own.gpus == wanted.gpus
    }

    /// Returns whether the machine runs, and so uses CPUs, RAM, GPUs and ports.
    pub fn runs(&self) -> bool {
        matches!(self.life, MachineState::Running { .. })
    }

    /// Returns the time at which the machine ended by itself, if it has.
    pub fn ended(&self, now: Millis) -> Option<Millis> {
        match self.life {
            MachineState::Running {
                dies_at: Some(at), ..
            } if at <= now => Some(at),
            _ => None,
        }
    }

    /// Stops the machine.
    pub fn halt(&mut self, now: Millis, why: Option<String>) {
        if self.runs() {
            self.cpu_ns = self.cpu_time(now);
            self.ports.clear();
            self.life = MachineState::Stopped(why);
        }
    }

    /// Returns the machine's report for the driver.
    pub fn report(&self, now: Millis) -> Value {
        let (_, phase, detail) = self.row(now);
        let again_ms = match self.life {
            MachineState::Running { ready_at, .. } if phase == "booting" => Some(ready_at - now),
            _ => None,
        };
        json!({ "phase": phase, "detail": detail, "again_ms": again_ms })
    }

    /// Returns the machine's row in a list.
    pub fn row(&self, now: Millis) -> MachineRow<'_> {
        let (phase, detail) = match &self.life {
            _ if self.ended(now).is_some() => ("stopped", Some(ENDED)),
            MachineState::Running { ready_at, .. } if now < *ready_at => ("booting", None),
            MachineState::Running { .. } => ("ready", None),
            MachineState::Created => ("creating", None),
            MachineState::Stopped(why) => ("stopped", why.as_deref()),
            MachineState::Failed => ("failed", Some("simulated failure")),
        };
        (self.wanted.incarnation, phase, detail)
    }

    /// Returns invented usage: 5% of the CPUs, 10% of the RAM and 10% of the disk.
    pub fn usage(&self, now: Millis) -> Value {
        let gib = 1_u64 << 30;
        json!({
            "cpu_ns": self.cpu_time(now),
            "at_ns": now.saturating_mul(1_000_000),
            "mem_used_bytes": u64::from(self.wanted.size.mem_gib) * gib / 10,
            "disk_used_bytes": u64::from(self.wanted.size.disk_size_gib) * gib / 10,
        })
    }

    fn cpu_time(&self, now: Millis) -> u64 {
        match self.life {
            MachineState::Running { since, .. } => {
                let ns = now.saturating_sub(since).saturating_mul(1_000_000);
                self.cpu_ns
                    .saturating_add(ns / 20 * u64::from(self.wanted.size.n_vcpus))
            }
            _ => self.cpu_ns,
        }
    }
}

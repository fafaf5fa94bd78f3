//! The instance: its intended state and the observed progress towards it.

use super::capacity::{CpuTier, GpuDevice, Size};
use super::ids::{Generation, InstanceId, NodeId, UserId};
use super::money::Rates;
use super::name::Name;
use super::secret::Encrypted;
use super::state::{Billed, InstanceState};
use super::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

/// The kind of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceType {
    Vm,
    Container,
}

impl ResourceType {
    pub const ALL: [Self; 2] = [Self::Vm, Self::Container];

    /// Returns the spelling of the REST interface.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Vm => "vm",
            Self::Container => "container",
        }
    }
}

/// The state that the user wants. It is durable before the request is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Intent {
    /// The instance exists and runs.
    Run,
    /// The instance exists and does not run.
    Stop,
    /// The instance does not exist.
    Delete,
    /// The instance exists, does not run, and is to run once its node has taken the start.
    Start,
}

/// The reconciler's progress on the current generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Progress {
    /// The node has not been observed in the intended state yet.
    Pending,
    /// The node has been observed in the intended state.
    Settled,
}

/// The database row of an instance.
///
/// The node and the addresses are in the claim too. The row repeats them so that a GET reads one
/// row only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    pub id: InstanceId,
    /// Sequence number in the order of creation.
    pub seq: u64,
    pub owner: UserId,
    /// Name, unique among living instances.
    pub name: Name,
    pub resource_type: ResourceType,
    pub flavor: String,
    pub cpu_tier: CpuTier,
    /// Size that the user requested.
    pub size: Size,
    /// Model of the GPUs.
    pub gpu_model: Option<String>,
    /// GPUs that are attached, or will be at the next start.
    pub gpus: Vec<GpuDevice>,
    /// Time of the create request.
    pub created_at: Timestamp,
    /// Rates at the time of creation; they never change.
    pub rates: Rates,
    /// `original_service_password`, encrypted.
    pub password: Encrypted,

    /// Node that runs the instance.
    pub node: NodeId,
    /// Login host of the SSH port.
    pub ssh_host: String,
    /// Login account.
    pub login_user: String,
    /// SSH port on the login host.
    pub ssh_port: u16,
    /// Whether the flavor offers SSH.
    pub ssh: bool,
    /// Port of the web page on the web host.
    pub web_port: Option<u16>,
    /// Address on the owner's private network.
    pub lan_ipv4: Ipv4Addr,
    /// Index of the owner's LAN subnet on the node.
    pub lan_subnet: u32,
    /// Public address; VMs only.
    pub public_ipv4: Option<Ipv4Addr>,
    /// Open ports on the public address, ascending.
    pub wan_ports: Vec<u16>,

    pub intent: Intent,
    /// Generation of the intent.
    pub generation: Generation,
    /// Incarnation in the labels of the engine's objects.
    pub incarnation: u64,
    /// Whether the instance has been reachable at least once.
    pub provisioned: bool,
    /// Whether provisioning failed.
    pub failed: bool,
    /// Progress on the current generation.
    pub progress: Progress,
    /// Deadline of the current generation, for provisioning and restart.
    pub deadline: Option<Timestamp>,
    /// Resize that the node has not confirmed yet.
    pub resize: Option<PendingResize>,

    /// Number of events so far, which is the index of the next event.
    pub events: u32,
    /// Number of ledger entries so far, which is the index of the next entry.
    pub ledger_entries: u32,
    /// Time of the last event; the next event is never earlier.
    pub last_event_at: Timestamp,
    /// Parts and size that the last ledger entry bills.
    pub billed: BilledSize,

    /// Number of times this row was written. The database layer raises it.
    pub version: u64,
}

/// The parts of an instance that are billed, and its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BilledSize {
    pub parts: Billed,
    pub size: Size,
}

/// A resize in progress. The old size and name stay until the node confirms it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingResize {
    /// Requested size.
    pub size: Size,
    /// Requested name, which is already reserved.
    pub name: Option<Name>,
}

impl Instance {
    /// Derives the state that the user sees from the intent and the observations.
    ///
    /// The intent takes precedence: users see it as soon as it is durable.
    pub fn state(&self) -> InstanceState {
        let stopped = match self.resource_type {
            ResourceType::Vm => InstanceState::ShutOff,
            ResourceType::Container => InstanceState::Exited,
        };
        match (self.intent, self.failed) {
            (Intent::Delete, _) => InstanceState::Deleted,
            (_, true) => InstanceState::Error,
            (Intent::Run, false) if self.provisioned => InstanceState::Running,
            (Intent::Run, false) => InstanceState::Provisioning,
            (Intent::Stop | Intent::Start, false) => stopped,
        }
    }

    /// Sets a new intent and starts a new generation. Reports of earlier generations become stale.
    pub fn intend(&mut self, intent: Intent, deadline: Option<Timestamp>) {
        self.intent = intent;
        self.generation = self.generation.next();
        self.progress = Progress::Pending;
        self.deadline = deadline;
    }
}

//! The instance: what was asked for (intent) and what was seen (observed).

use super::capacity::{CpuTier, GpuDevice, Size};
use super::ids::{Generation, InstanceId, NodeId, UserId};
use super::money::Rates;
use super::name::Name;
use super::secret::Sealed;
use super::state::{Billed, InstanceState};
use super::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

/// VM or container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceType {
    /// A virtual machine.
    Vm,
    /// A container.
    Container,
}

impl ResourceType {
    /// As the wire spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Vm => "vm",
            Self::Container => "container",
        }
    }
}

/// What the user asked for; durable before it is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Intent {
    /// Exist and run.
    Run,
    /// Exist, not run.
    Stop,
    /// Not exist.
    Delete,
}

/// How far the reconciler has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Progress {
    /// The node has not been seen to follow the present generation yet.
    Pending,
    /// The node was seen to hold what is intended.
    Settled,
}

/// One instance, as the database keeps it. Addresses and the node are in its claim too; they are
/// repeated here so that one row answers a GET.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    /// Its identity.
    pub id: InstanceId,
    /// Place in the order of creation.
    pub seq: u64,
    /// Who owns it.
    pub owner: UserId,
    /// Unique among living instances.
    pub name: Name,
    /// VM or container.
    pub resource_type: ResourceType,
    /// Flavor name.
    pub flavor: String,
    /// CPU tier.
    pub cpu_tier: CpuTier,
    /// What the user asked it to have.
    pub size: Size,
    /// Model of its GPUs.
    pub gpu_model: Option<String>,
    /// GPUs attached, or to be attached at the next start.
    pub gpus: Vec<GpuDevice>,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// Frozen at creation.
    pub rates: Rates,
    /// `original_service_password`, encrypted.
    pub password: Sealed,

    /// Where it is.
    pub node: NodeId,
    /// Login host for its SSH port.
    pub ssh_host: String,
    /// Login account.
    pub login_user: String,
    /// SSH port on the login host.
    pub ssh_port: u16,
    /// Whether SSH is offered at all.
    pub ssh: bool,
    /// Port of its web page.
    pub web_port: Option<u16>,
    /// Address on its owner's network.
    pub lan_ipv4: Ipv4Addr,
    /// Which of the node's LAN subnets that is.
    pub lan_subnet: u32,
    /// Public address.
    pub public_ipv4: Option<Ipv4Addr>,
    /// Open ports on it, ascending.
    pub wan_ports: Vec<u16>,

    /// What the user wants.
    pub intent: Intent,
    /// Which intent that is.
    pub generation: Generation,
    /// Labels the engine's objects.
    pub incarnation: u64,
    /// It was reachable once.
    pub provisioned: bool,
    /// It could not be made.
    pub failed: bool,
    /// How far the present generation has come.
    pub progress: Progress,
    /// Deadline of the present generation, for provisioning and restart.
    pub deadline: Option<Timestamp>,
    /// A change of size that the node has not taken yet.
    pub resize: Option<Resize>,

    /// Events so far; numbers the next one.
    pub events: u32,
    /// Ledger entries so far; numbers the next one.
    pub ledger_entries: u32,
    /// Time of the last event; the next one is not earlier.
    pub last_event_at: Timestamp,
    /// What the last ledger entry bills.
    pub billed: (Billed, Size),
}

/// A change of size under way. Until the node has taken it, the old size and name hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resize {
    /// Size to come.
    pub size: Size,
    /// Name to come with it, reserved already.
    pub name: Option<Name>,
}

impl Instance {
    /// What its user sees.
    pub fn state(&self) -> InstanceState {
        InstanceState::of(self)
    }

    /// A new intent: everything that is known of older generations is stale from here on.
    pub fn intend(&mut self, intent: Intent, deadline: Option<Timestamp>) {
        self.intent = intent;
        self.generation = self.generation.next();
        self.progress = Progress::Pending;
        self.deadline = deadline;
    }
}

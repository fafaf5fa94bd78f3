//! What the host and a driver tell each other. Mirrors `driver-types` of the WIT package.

use super::blueprint::Blueprint;
use super::capacity::{GpuDevice, Size};
use super::ids::{Generation, InstanceId};
use super::instance::ResourceType;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

/// One creation of one instance; labels on the engine's objects carry it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tag {
    /// The instance.
    pub instance: InstanceId,
    /// Counts creations.
    pub incarnation: u64,
}

/// A network of a node, and an instance's place on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// Short, the same for all instances on it.
    pub id: String,
    /// Its addresses.
    pub subnet: ipnet::Ipv4Net,
    /// The node's end.
    pub gateway: Ipv4Addr,
    /// The instance's own address.
    pub address: Ipv4Addr,
}

impl Network {
    /// How the ids of public networks begin, and no others: the node's rules tell them by it, and
    /// engines that take the first network by name for the way out take this one.
    pub const PUBLIC: &str = "0";

    /// Whether its users reach it directly.
    pub fn is_public(&self) -> bool {
        self.id.starts_with(Self::PUBLIC)
    }
}

/// A port of the node that leads to a port inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublishedPort {
    /// On the node.
    pub node_port: u16,
    /// Inside.
    pub instance_port: u16,
}

/// What `ensure` is to bring about.
#[derive(Debug, Clone)]
pub struct Spec {
    /// Tag, generation, size, network, public address, ports.
    pub target: Target,
    /// Host name inside.
    pub hostname: String,
    /// SSH and web.
    pub published: Vec<PublishedPort>,
    /// Names of the GPU devices to attach.
    pub gpu_devices: Vec<String>,
    /// Its driver may have been asked to make it before.
    pub may_exist: bool,
    /// What it is made of.
    pub blueprint: Arc<Blueprint>,
}

/// An existing instance, for the calls that change it.
#[derive(Debug, Clone)]
pub struct Target {
    /// Which one.
    pub tag: Tag,
    /// The intent that the call carries out.
    pub generation: Generation,
    /// VM or container.
    pub resource_type: ResourceType,
    /// What it is to have.
    pub size: Size,
    /// Its owner's private network.
    pub network: Network,
    /// The network of its public address, VMs only.
    pub public_network: Option<Network>,
    /// Open ports on it.
    pub wan_ports: Vec<u16>,
}

impl Target {
    /// Something of ours on a node that no row describes; good for deletion only.
    pub fn orphan(tag: Tag) -> Self {
        let nowhere = Ipv4Addr::UNSPECIFIED;
        Self {
            tag,
            generation: Generation::default(),
            resource_type: ResourceType::Container,
            size: Size::default(),
            network: Network {
                id: "none".to_owned(),
                subnet: ipnet::Ipv4Net::default(),
                gateway: nowhere,
                address: nowhere,
            },
            public_network: None,
            wan_ports: Vec::new(),
        }
    }
}

/// Where an instance is on its node, as its driver says.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Phase {
    /// The engine does not have it.
    Absent,
    /// Its image is on the way.
    Pulling(String),
    /// Being made.
    Creating,
    /// Started.
    Booting,
    /// Up, as far as the engine knows.
    Ready,
    /// Exists, does not run.
    Stopped(Option<String>),
    /// Will never come up.
    Failed(String),
    /// Does not run; its content moves to a larger disk.
    Growing(String),
}

/// A driver's answer about one instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The generation of the call it answers.
    pub generation: Generation,
    /// Where the instance is.
    pub phase: Phase,
    /// When to ask again; nothing to do if none.
    pub again: Option<Duration>,
}

/// One line of a node's list.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Observed {
    /// Which instance.
    pub tag: Tag,
    /// Where it is.
    pub phase: Phase,
}

/// When the disk of an existing instance can grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskGrow {
    /// Never.
    No,
    /// While it does not run.
    Stopped,
    /// At any time.
    Running,
}

/// What a node can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "mirrors the WIT record")]
pub struct Features {
    /// Runs containers.
    pub containers: bool,
    /// Runs virtual machines.
    pub vms: bool,
    /// Sizes change while running.
    pub live_resize: bool,
    /// When disks grow.
    pub disk_grow: DiskGrow,
    /// Disk size is enforced.
    pub disk_limit: bool,
    /// Attaches GPUs.
    pub gpus: bool,
    /// Reads usage.
    pub stats: bool,
    /// Instances are reachable over a network.
    pub network: bool,
    /// Hardware virtualisation.
    pub kvm: bool,
}

/// A driver's view of its node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeHealth {
    /// Engine and version, for people.
    pub version: String,
    /// What it can do.
    pub features: Features,
    /// Totals as the engine knows them; zeros where it does not say.
    pub totals: Size,
    /// GPUs the engine knows of.
    pub gpus: Vec<GpuDevice>,
    /// Changes when the engine restarted and lost its instances; empty if it can't tell.
    pub boot_id: String,
}

/// Live usage of a running instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// CPU used since start, ns.
    pub cpu_ns: u64,
    /// When it was read, ns of the engine's clock.
    pub at_ns: u64,
    /// RAM, bytes.
    pub mem_used_bytes: u64,
    /// Disk, bytes.
    pub disk_used_bytes: u64,
}

/// Less is left of something than was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortage {
    /// Field name.
    pub field: String,
    /// Asked for.
    pub requested: u64,
    /// There.
    pub available: u64,
}

/// Why a call of a plugin failed. Its text is for the operator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PluginError {
    /// A field of the request is wrong.
    #[error("{field}: {message}")]
    Invalid {
        /// The field.
        field: String,
        /// What is wrong with it.
        message: String,
    },
    /// No such object.
    #[error("not found")]
    NotFound,
    /// It exists, and differently.
    #[error("conflict: {0}")]
    Conflict(String),
    /// Not enough of something.
    #[error("insufficient resources on the node: {0:?}")]
    Insufficient(Vec<Shortage>),
    /// The engine did not answer.
    #[error("engine out of reach: {0}")]
    Unreachable(String),
    /// The driver cannot do this.
    #[error("unsupported: {0}")]
    Unsupported(String),
    /// Ask again later.
    #[error("retry in {} ms", .0.as_millis())]
    RetryLater(Duration),
    /// The plugin said so.
    #[error("{0}")]
    Other(String),
    /// The plugin trapped, ran out of its limits, or answered nonsense. The call had no result;
    /// what it did to the engine is unknown.
    #[error("plugin fault: {0}")]
    Fault(String),
    /// Too many calls wait for this node already.
    #[error("the node's queue is full")]
    Busy,
}

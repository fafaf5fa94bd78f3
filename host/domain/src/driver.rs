//! The data that the host and a driver exchange. Mirrors `driver-types` of the WIT package.

use super::blueprint::Blueprint;
use super::capacity::{GpuDevice, Size};
use super::ids::{Generation, InstanceId, SnapshotId, VolumeId};
use super::instance::ResourceType;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

/// Identifies one creation of one instance. The engine's objects carry it in their labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tag {
    pub instance: InstanceId,
    /// Number of this creation of the instance.
    pub incarnation: u64,
}

/// A network of a node, and the address of an instance on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceNetwork {
    /// Short id, shared by all instances on the network.
    pub id: String,
    /// Address range of the network.
    pub subnet: ipnet::Ipv4Net,
    /// Address of the node.
    pub gateway: Ipv4Addr,
    /// Address of the instance.
    pub address: Ipv4Addr,
}

impl InstanceNetwork {
    /// The first character of the ids of public networks, and of no others.
    ///
    /// The node's firewall rules recognize public networks by it. The digit sorts first because some
    /// engines choose the first network by name for the default route.
    pub const PUBLIC: &str = "0";

    /// Returns whether the network has public addresses.
    pub fn is_public(&self) -> bool {
        self.id.starts_with(Self::PUBLIC)
    }
}

/// A port of the node that is forwarded to a port of the instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublishedPort {
    pub node_port: u16,
    pub instance_port: u16,
    /// Whether only Wharf may reach it.
    pub private: bool,
}

/// A volume in an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    pub volume: VolumeId,
    /// The directory in the instance.
    pub path: String,
    pub read_only: bool,
}

/// A snapshot, and the instance of which it is a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    pub snapshot: SnapshotId,
    pub instance: Tag,
}

/// The instance that `ensure` creates.
#[derive(Debug, Clone)]
pub struct Spec {
    pub target: DriverTarget,
    /// Host name inside the instance.
    pub hostname: String,
    /// Published ports for SSH and the web page.
    pub published: Vec<PublishedPort>,
    /// The node's address of private ports; `None` if the node has no other than that of public ones.
    pub private_address: Option<Ipv4Addr>,
    /// Names of the GPU devices to attach.
    pub gpu_devices: Vec<String>,
    /// The snapshot from which the instance has its disk; `None` if it has the image's.
    pub source: Option<Source>,
    /// Whether its content comes from elsewhere before its first start.
    pub fetched: bool,
    /// Whether an earlier call may have created the instance already.
    pub may_exist: bool,
    /// Whether the program or the configuration names its image. An installed plugin does not count. No guest sees it.
    pub image_is_trusted: bool,
    /// Description of the instance's content.
    pub blueprint: Arc<Blueprint>,
}

/// The instance that a driver call changes.
#[derive(Debug, Clone)]
pub struct DriverTarget {
    pub tag: Tag,
    /// Generation of the intent that the call carries out.
    pub generation: Generation,
    pub resource_type: ResourceType,
    /// Intended size.
    pub size: Size,
    /// Private network of the owner.
    pub network: InstanceNetwork,
    /// Network of the public address; VMs only.
    pub public_network: Option<InstanceNetwork>,
    /// Open ports on the public address.
    pub wan_ports: Vec<u16>,
    /// Volumes of the instance.
    pub volumes: Vec<Mount>,
}

impl DriverTarget {
    /// Returns a target for an object of this installation that has no row. It only serves to delete
    /// the object.
    pub fn orphan(tag: Tag) -> Self {
        let unspecified = Ipv4Addr::UNSPECIFIED;
        Self {
            tag,
            generation: Generation::default(),
            resource_type: ResourceType::Container,
            size: Size::default(),
            network: InstanceNetwork {
                id: "none".to_owned(),
                subnet: ipnet::Ipv4Net::default(),
                gateway: unspecified,
                address: unspecified,
            },
            public_network: None,
            wan_ports: Vec::new(),
            volumes: Vec::new(),
        }
    }
}

/// The phase of an instance on its node, as the driver reports it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Phase {
    /// The engine does not have the instance.
    Absent,
    /// The engine pulls the image.
    Pulling(String),
    /// The engine creates the instance.
    Creating,
    /// The instance has started and is not ready yet.
    Booting,
    /// The instance runs, as far as the engine knows.
    Ready,
    /// The instance exists and does not run, with a reason if it ended by itself.
    Stopped(Option<String>),
    /// The instance failed for good, with the reason.
    Failed(String),
    /// The instance does not run, and its content moves to a larger disk.
    Growing(String),
    /// Another node of the cluster has the instance, or it is on its way to this one.
    Elsewhere(String),
}

/// A driver's report on one instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverReport {
    /// Generation of the call that the report answers.
    pub generation: Generation,
    pub phase: Phase,
    /// Delay before the next call; `None` if no further call is needed.
    pub again: Option<Duration>,
}

/// The state of a volume or a snapshot on its node, as the driver reports it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum DiskState<T> {
    /// The engine does not have it.
    Absent,
    /// It is not complete; with the progress.
    Making(String),
    /// It is complete.
    Ready(T),
    /// An instance needs it, so it was not removed.
    InUse,
    /// It failed for good, with the reason.
    Failed(String),
}

impl<T> DiskState<T> {
    /// Whether the engine has all of it.
    pub fn is_whole(&self) -> bool {
        matches!(self, Self::Ready(_) | Self::InUse)
    }
}

/// A driver's report on one volume or snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskReport<T> {
    pub state: DiskState<T>,
    /// Delay before the next call; `None` if no further call is needed.
    pub again: Option<Duration>,
}

/// The state of a volume. Instances may have it once it is complete.
pub type VolumeState = DiskState<()>;
/// A driver's report on one volume.
pub type VolumeReport = DiskReport<()>;
/// The state of a snapshot.
pub type SnapshotState = DiskState<CompleteSnapshot>;
/// A driver's report on one snapshot.
pub type SnapshotReport = DiskReport<CompleteSnapshot>;

/// One volume in a node's list.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ObservedVolume {
    pub volume: VolumeId,
    pub state: VolumeState,
}

/// The result of a proof that a node holds the sizes of disks and volumes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Limits {
    Held,
    /// It does not hold them; the sign of it.
    Broken(String),
}

/// A complete snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CompleteSnapshot {
    /// The most that its data can take beside the image. In a node's list the image may be included.
    pub bytes: u64,
    /// Whether instances can be made from it.
    pub clonable: bool,
}

/// One snapshot in a node's list.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ObservedSnapshot {
    pub snapshot: SnapshotId,
    /// The instance of which it is a copy.
    pub instance: Tag,
    pub state: SnapshotState,
}

/// One instance in a node's list.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Observed {
    pub tag: Tag,
    pub phase: Phase,
}

/// When the disk of an existing instance can grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskGrow {
    /// Never.
    No,
    /// While the instance is stopped.
    Stopped,
    /// At any time.
    Running,
}

/// How a node takes snapshots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotKind {
    /// It takes none.
    None,
    /// A snapshot shares the blocks of the disk. It takes a moment.
    Shared,
    /// A snapshot copies all data since the image. The instance stands still meanwhile.
    Copied,
}

/// When a node sends the content of a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum VolumeContent {
    #[default]
    Never,
    /// While no instance that runs writes it.
    AtRest,
    AtAnyTime,
}

/// A volume that a node is asked to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewVolume {
    pub id: VolumeId,
    pub size_gib: u32,
    /// Its content comes from a backup.
    pub fetched: bool,
}

/// The features of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "mirrors the WIT record")]
pub struct Features {
    /// Whether the node runs containers.
    pub containers: bool,
    /// Whether the node runs virtual machines.
    pub vms: bool,
    /// Whether vCPUs and RAM of a running instance can change.
    pub live_resize: bool,
    /// When disks can grow.
    pub disk_grow: DiskGrow,
    /// Whether the engine enforces disk sizes.
    pub disk_limit: bool,
    /// Whether the engine attaches GPUs.
    pub gpus: bool,
    /// Whether the engine reports usage.
    pub stats: bool,
    /// Whether instances are reachable over a network.
    pub network: bool,
    /// Whether the node has hardware virtualization.
    pub kvm: bool,
    /// Whether the node makes volumes whose sizes hold.
    pub volumes: bool,
    /// Whether an existing instance can get and lose volumes.
    pub late_attach: bool,
    /// How the node takes snapshots.
    pub snapshots: SnapshotKind,
    /// Whether the content of containers moves between this node and others of its kind.
    pub content: bool,
    /// When the content of volumes is sent to backups.
    pub volume_content: VolumeContent,
}

/// The result of probing a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeHealth {
    /// Name and version of the engine, for display.
    pub version: String,
    pub features: Features,
    /// Total resources of the node; 0 where the engine reports none.
    pub totals: Size,
    /// GPUs that the engine reports.
    pub gpus: Vec<GpuDevice>,
    /// Id that changes when the engine restarts and loses its instances; empty if unknown.
    pub boot_id: String,
}

/// A network of an engine, of any owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineNetwork {
    pub name: String,
    pub subnets: Vec<ipnet::Ipv4Net>,
    /// The installation that owns it; none if it is not Wharf's.
    pub installation: Option<String>,
}

/// The surroundings of a node's instances.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surroundings {
    pub networks: Vec<EngineNetwork>,
    /// Images that the engine does not have and cannot pull.
    pub missing_images: Vec<String>,
    /// Images that the engine has without the label of an SSH server.
    pub images_without_ssh: Vec<String>,
    /// Contents of images for users, by reference.
    pub image_contents: BTreeMap<String, String>,
    /// Whether the newest instance sees its own CPUs and memory in place of the machine's. `None` if no
    /// instance shows it.
    pub own_view: Option<bool>,
    /// The host name of the machine whose routes the networks join, if the engine knows it.
    pub machine: Option<String>,
}

/// The mark of an engine's store: it tells the store from another one and from an empty one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum StoreMark {
    /// The driver or the engine cannot keep a mark.
    Unsupported,
    /// The store has no mark.
    Missing,
    /// The store has this mark.
    Is(String),
}

impl StoreMark {
    /// Longest mark in bytes.
    const MAX: usize = 64;

    /// The mark of a store that ends with its engine's process.
    const VOLATILE: &str = "volatile";

    /// Whether instances that are absent have ended for certain, because the store is lost whenever its
    /// engine ends.
    pub fn is_volatile(&self) -> bool {
        matches!(self, Self::Is(mark) if mark == Self::VOLATILE)
    }

    /// Returns whether a text can be a mark.
    pub fn is_valid(text: &str) -> bool {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
        !text.is_empty() && text.len() <= Self::MAX && text.bytes().all(allowed)
    }
}

/// The current usage of a running instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResourceUsage {
    /// CPU time since the start, in ns.
    pub cpu_ns: u64,
    /// Time of the reading by the engine's clock, in ns.
    pub at_ns: u64,
    /// RAM in use, in bytes.
    pub mem_used_bytes: u64,
    /// Disk in use, in bytes.
    pub disk_used_bytes: u64,
}

/// A field of a request that asks for more than the node has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportedShortage {
    pub field: String,
    pub requested: u64,
    pub available: u64,
}

/// An error of a plugin call. Its text is for the operator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PluginError {
    /// A field of the request is not valid.
    #[error("{field}: {message}")]
    Invalid { field: String, message: String },
    /// The object does not exist.
    #[error("not found")]
    NotFound,
    /// The object exists with another specification.
    #[error("conflict: {0}")]
    Conflict(String),
    /// The node lacks resources.
    #[error("insufficient resources on the node: {0:?}")]
    Insufficient(Vec<ReportedShortage>),
    /// The engine did not respond.
    #[error("engine out of reach: {0}")]
    Unreachable(String),
    /// The driver does not support the operation.
    #[error("unsupported: {0}")]
    Unsupported(String),
    /// The call should be repeated after a delay.
    #[error("retry in {} ms", .0.as_millis())]
    RetryLater(Duration),
    /// Another error that the plugin reported.
    #[error("{0}")]
    Other(String),
    /// The plugin trapped, exceeded a limit, or returned an invalid result. The call may still have
    /// changed the engine.
    #[error("plugin fault: {0}")]
    Fault(String),
    /// The node's queue of calls is full.
    #[error("the node's queue is full")]
    Busy,
}

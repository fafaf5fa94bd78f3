//! The fields of the engine's answers that the driver reads. Each may be missing or null.

use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// Every answer but that of the metrics.
#[derive(Debug, Deserialize)]
pub struct Envelope<T> {
    /// The content.
    pub metadata: T,
}

/// An answer that tells of an operation in the background.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Accepted {
    /// `/1.0/operations/ID`, with the project in some versions.
    pub operation: String,
}

/// `GET /1.0/operations/ID/wait`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Operation {
    /// 103 while it runs, 200 after success.
    pub status_code: u16,
    /// The objects that it changes, by kind.
    #[serde(deserialize_with = "or_default")]
    pub resources: BTreeMap<String, Vec<String>>,
    /// What it does.
    pub description: String,
    /// The member that carries it out.
    pub location: String,
    /// Why it has failed.
    pub err: String,
}

/// `GET /1.0/images?recursion=1`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Image {
    pub fingerprint: String,
    /// In bytes.
    pub size: u64,
    pub uploaded_at: String,
    #[serde(deserialize_with = "or_default")]
    pub properties: BTreeMap<String, String>,
    #[serde(deserialize_with = "or_default")]
    pub aliases: Vec<ImageAlias>,
}

/// A name of an image.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ImageAlias {
    pub name: String,
}

/// `GET /1.0/instances/NAME`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Instance {
    /// Configuration, with the engine's own `volatile.` keys.
    #[serde(deserialize_with = "or_default")]
    pub config: BTreeMap<String, String>,
    /// Devices by name.
    #[serde(deserialize_with = "or_default")]
    pub devices: BTreeMap<String, BTreeMap<String, String>>,
    /// The state, as a number.
    pub status_code: u16,
    /// The time of the last start, 1970 without one.
    pub last_used_at: String,
    /// The member that has it.
    pub location: String,
}

/// `GET /1.0/instances/NAME/snapshots/SNAPSHOT`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Snapshot {
    /// The configuration of the instance at its time.
    #[serde(deserialize_with = "or_default")]
    pub config: BTreeMap<String, String>,
    /// Bytes that it shares with nothing; negative if the pool does not have it.
    pub size: i64,
}

/// `GET /1.0/instances/NAME/state`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct State {
    /// The state, as a number.
    pub status_code: u16,
    /// CPU time.
    pub cpu: Cpu,
    /// Memory.
    pub memory: Amount,
    /// Disks by device.
    #[serde(deserialize_with = "or_default")]
    pub disk: BTreeMap<String, Amount>,
}

/// CPU time.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub struct Cpu {
    /// Nanoseconds since the start; negative if unknown.
    pub usage: i64,
}

/// Use and size of something, in bytes.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub struct Amount {
    /// In use.
    #[serde(alias = "used")]
    pub usage: i64,
    /// All.
    pub total: i64,
}

/// `GET /1.0`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Server {
    /// `trusted` for a client whose certificate is known.
    pub auth: String,
    /// The extensions of the interface that it has.
    #[serde(deserialize_with = "or_default")]
    pub api_extensions: Vec<String>,
    /// The rest.
    pub environment: Environment,
}

/// The server's description of itself.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Environment {
    /// The release.
    pub server_version: String,
    /// The member's name.
    pub server_name: String,
    /// The architecture of the member's machine.
    pub kernel_architecture: String,
    /// Whether it is a member of a cluster.
    pub server_clustered: bool,
    /// The storage drivers in use.
    pub storage: String,
}

/// `GET /1.0/resources`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Resources {
    /// Threads.
    pub cpu: Total,
    /// Bytes.
    pub memory: Total,
    /// Graphics cards.
    pub gpu: Gpus,
}

/// A count.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub struct Total {
    /// All of them.
    pub total: u64,
}

/// Graphics cards.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Gpus {
    /// Each card.
    #[serde(deserialize_with = "or_default")]
    pub cards: Vec<Card>,
}

/// A graphics card.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Card {
    /// The name of its kind.
    pub product: String,
    /// Its maker.
    pub vendor: String,
    /// The address on the PCI bus, none for other buses.
    pub pci_address: String,
    /// The program of the kernel for it.
    pub driver: String,
}

/// `GET /1.0/storage-pools/POOL`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Pool {
    /// `btrfs`, `zfs` and so on.
    pub driver: String,
}

/// `GET /1.0/storage-pools/POOL/resources`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct PoolResources {
    /// Bytes.
    pub space: Total,
}

/// `GET /1.0/cluster/members/MEMBER`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Member {
    /// `Online`, `Evacuated` and so on.
    pub status: String,
}

/// `GET /1.0/networks/NETWORK`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Network {
    /// `bridge`, `ovn`, `physical` and so on.
    pub r#type: String,
    /// `Created`, `Pending` or `Errored`.
    pub status: String,
    /// Its configuration; that of a bridge is empty for a client that is restricted to a project.
    #[serde(deserialize_with = "or_default")]
    pub config: BTreeMap<String, String>,
}

/// `GET /1.0/networks/NETWORK/forwards?recursion=1`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Forward {
    /// The address, which no other forward has.
    pub listen_address: String,
    /// Its configuration.
    #[serde(deserialize_with = "or_default")]
    pub config: BTreeMap<String, String>,
}

/// `GET /1.0/network-acls/ACL`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Acl {
    /// The name.
    pub name: String,
}

/// `GET /1.0/projects/PROJECT`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Project {
    /// The name.
    pub name: String,
    /// Its features and restrictions.
    #[serde(deserialize_with = "or_default")]
    pub config: BTreeMap<String, String>,
}

/// `GET /1.0/storage-pools/POOL/volumes/custom/NAME/state`
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub struct VolumeState {
    /// Usage; none if the pool does not have the volume.
    pub usage: Option<Amount>,
}

/// `GET /1.0/storage-pools/POOL/volumes/custom/NAME`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Volume {
    /// Its configuration.
    #[serde(deserialize_with = "or_default")]
    pub config: BTreeMap<String, String>,
}

fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    input: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(input)?.unwrap_or_default())
}

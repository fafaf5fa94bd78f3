//! The fields of the engine's answers that the driver reads. Each may be missing or null.

use serde::Deserialize;
use std::collections::BTreeMap;

/// Labels of an object.
pub type Labels = Option<BTreeMap<String, String>>;

/// Returns one label of an object.
pub fn label<'a>(labels: &'a Labels, key: &str) -> Option<&'a str> {
    labels.as_ref()?.get(key).map(String::as_str)
}

/// `GET /containers/NAME/json`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Details {
    /// The state.
    pub state: State,
    /// The configuration at creation.
    pub config: Config,
    /// The id of its image.
    pub image: String,
    /// The limits.
    pub host_config: Limits,
    /// Mounts, which are not on the container's own disk.
    pub mounts: Option<Vec<Mount>>,
    /// Bytes in the writable layer; only if requested.
    pub size_rw: Option<i64>,
    /// Bytes in all layers, on Podman only in those of its image; only if requested.
    pub size_root_fs: Option<i64>,
    /// The storage of its disk.
    pub graph_driver: Option<Storage>,
}

/// A volume or a directory of the node.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Mount {
    /// The path on the node.
    pub source: String,
    /// The path in the container.
    pub destination: String,
    /// The name of the volume.
    pub name: Option<String>,
}

/// State of a container.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct State {
    /// The status: `created`, `running`, `exited` and so on.
    pub status: String,
    /// The exit code of the first process, once it has ended.
    pub exit_code: i64,
    /// Whether the kernel ended it for lack of memory.
    #[serde(rename = "OOMKilled")]
    pub oom_killed: bool,
    /// The time of the last start.
    pub started_at: String,
    /// The reason for a failed start.
    pub error: Option<String>,
}

/// Configuration of a container.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Config {
    /// The labels.
    pub labels: Labels,
    /// The name of its image.
    pub image: String,
}

/// Limits of a container.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Limits {
    /// The scheduling period, in microseconds.
    pub cpu_period: i64,
    /// CPU time per period, in microseconds.
    pub cpu_quota: i64,
    /// Memory, in bytes.
    pub memory: i64,
    /// The largest size of `/dev/shm`, in bytes.
    pub shm_size: i64,
}

impl Limits {
    /// Returns whether the limits of CPU and memory are equal.
    pub fn are(&self, other: &Self) -> bool {
        let sized = |limits: &Self| (limits.cpu_period, limits.cpu_quota, limits.memory);
        sized(self) == sized(other)
    }
}

/// One entry of `GET /containers/json`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Summary {
    /// The id.
    pub id: String,
    /// The names, each with a leading slash.
    pub names: Option<Vec<String>>,
    /// The labels.
    pub labels: Labels,
    /// The status, as in [`State::status`].
    pub state: String,
    /// The status for display, such as `Exited (0) 3 minutes ago`.
    pub status: String,
}

/// `GET /images/NAME/json`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Image {
    /// The storage driver that keeps it.
    pub graph_driver: Option<Storage>,
    /// The settings of its containers.
    pub config: Option<ImageConfig>,
}

/// The label of an image in which an SSH server starts.
const SSH: &str = "io.wharf.ssh";
/// The label of an image with its content, for users.
const CONTENT: &str = "io.wharf.content";
/// The label of an image whose first start can be repeated on the disk of another instance.
const CLONABLE: &str = "io.wharf.clonable";
/// The label of a snapshot: the size of the image below it, in bytes.
const IMAGE_BYTES: &str = "io.wharf.image-bytes";
/// The label of a copy of a stopped container: the time of its last start.
const LAST_START: &str = "io.wharf.last-start";

/// One entry of `GET /images/json`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ImageSummary {
    /// The names; null if it has none.
    pub repo_tags: Option<Vec<String>>,
    pub labels: Labels,
    /// Bytes of all layers.
    pub size: u64,
}

impl ImageSummary {
    /// Whether instances can be made from it.
    pub fn is_clonable(&self) -> bool {
        label(&self.labels, CLONABLE).is_some()
    }
}

/// One entry of `GET /images/NAME/history`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Layer {
    pub size: u64,
}

/// A line of `GET /events`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Event {
    pub action: String,
    /// In seconds.
    #[serde(rename = "time")]
    pub time: Option<i64>,
}

/// The settings of an image's containers.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ImageConfig {
    pub labels: Labels,
}

/// A storage driver.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Storage {
    /// The name: `btrfs`, `overlay2` and so on.
    pub name: String,
}

impl Image {
    /// Returns one label of the image.
    pub fn label(&self, key: &str) -> Option<&str> {
        label(&self.config.as_ref()?.labels, key)
    }

    /// Whether it has the label of an SSH server.
    pub fn has_ssh(&self) -> bool {
        self.label(SSH).is_some()
    }

    /// The content, for users.
    pub fn content(&self) -> Option<&str> {
        self.label(CONTENT)
    }

    /// Whether instances can be made from its snapshots.
    pub fn is_clonable(&self) -> bool {
        self.label(CLONABLE).is_some()
    }

    /// The time of the last start of the stopped container that it is a copy of.
    pub fn last_start(&self) -> Option<&str> {
        self.label(LAST_START)
    }

    /// The size of the image below a snapshot.
    pub fn image_bytes(&self) -> Option<u64> {
        self.label(IMAGE_BYTES)?.parse().ok()
    }

    /// See [`Storage::counts_image`].
    pub fn is_counted(&self) -> bool {
        self.graph_driver
            .as_ref()
            .is_some_and(Storage::counts_image)
    }
}

impl Storage {
    /// Returns whether the image counts towards the limit of a container's disk. It does if a
    /// container is a copy that shares blocks with the image. Other storage drivers count changes
    /// only.
    pub fn counts_image(&self) -> bool {
        ["btrfs", "devicemapper"].contains(&self.name.as_str())
    }
}

/// `GET /networks/NAME`, and a row of `GET /networks`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NetworkDetails {
    /// The name.
    pub name: String,
    /// The labels.
    pub labels: Labels,
    /// The addresses.
    #[serde(rename = "IPAM")]
    pub ipam: Ipam,
}

/// Addresses of a network.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Ipam {
    /// One entry per subnet.
    pub config: Option<Vec<Subnet>>,
}

/// One subnet of a network.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Subnet {
    /// The subnet in CIDR notation.
    pub subnet: String,
}

/// `GET /containers/NAME/stats`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Stats {
    /// The time of the sample, RFC 3339.
    pub read: String,
    /// CPU time.
    pub cpu_stats: CpuStats,
    /// Memory.
    pub memory_stats: MemoryStats,
}

/// CPU time of a container.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct CpuStats {
    /// CPU time since the start.
    pub cpu_usage: CpuUsage,
}

/// CPU time used.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct CpuUsage {
    /// CPU time, in nanoseconds.
    pub total_usage: u64,
}

/// Memory of a container.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct MemoryStats {
    /// Usage in bytes, including the page cache.
    pub usage: u64,
    /// The limit in effect, in bytes.
    pub limit: u64,
    /// The kernel's counters by name. Podman sends none.
    pub stats: Option<BTreeMap<String, u64>>,
}

/// `GET /containers/NAME/top?ps_args=rss`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Resident {
    /// One row per process with one column: KiB.
    pub processes: Vec<Vec<String>>,
}

impl Resident {
    /// The sum over all processes. Shared memory counts once for each process.
    pub fn bytes(&self) -> u64 {
        let kib = self.processes.iter().flatten();
        kib.filter_map(|text| text.parse::<u64>().ok()).sum::<u64>() << 10
    }
}

/// `GET /version`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Version {
    /// The engine's version.
    pub version: String,
    /// The version of its interface.
    pub api_version: String,
    /// The parts of the engine; the first is the engine itself.
    pub components: Option<Vec<Component>>,
}

/// One part of an engine.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Component {
    /// The name: `Engine` or `Podman Engine`.
    pub name: String,
}

/// `GET /info`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Info {
    /// The host name of the node.
    pub name: String,
    /// CPUs of the node.
    #[serde(rename = "NCPU")]
    pub ncpu: u32,
    /// Bytes of RAM of the node.
    pub mem_total: u64,
    /// The storage driver.
    pub driver: String,
    /// The storage driver's status, as pairs of a name and a value.
    pub driver_status: Option<Vec<Vec<String>>>,
    /// The version of cgroups: `1` or `2`.
    pub cgroup_version: String,
    /// Whether a Podman runs without root.
    pub rootless: bool,
    /// Security options; a rootless Docker lists `rootless`.
    pub security_options: Option<Vec<String>>,
    /// The directories of CDI files, on a Docker that supports the Container Device Interface.
    #[serde(rename = "CDISpecDirs")]
    pub cdi_spec_dirs: Option<Vec<String>>,
}

impl Info {
    /// Returns whether the engine runs without root.
    pub fn is_rootless(&self) -> bool {
        let mut options = self.security_options.iter().flatten();
        self.rootless || options.any(|option| option == "name=rootless")
    }

    /// Returns whether containerd stores images and containers, in place of a storage driver of the
    /// engine.
    pub fn has_snapshotter(&self) -> bool {
        self.driver_says("driver-type")
            .is_some_and(|kind| kind.starts_with("io.containerd.snapshotter"))
    }

    /// Returns a value of the storage driver's status.
    pub fn driver_says(&self, name: &str) -> Option<&str> {
        let mut status = self.driver_status.iter().flatten();
        status.find_map(|row| match row.as_slice() {
            [key, value] if key == name => Some(value.as_str()),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Details, Summary};

    #[test]
    fn nulls_and_unknown_fields_are_accepted() {
        let text = r#"{"State":{"Status":"running","OOMKilled":false,"Health":null},"Config":{"Labels":null},
            "HostConfig":{"CpuQuota":100000,"StorageOpt":null,"Memory":1},"Mounts":[]}"#;
        let details: Details = serde_json::from_str(text).unwrap();
        assert_eq!(details.state.status, "running");
        assert_eq!(details.host_config.cpu_quota, 100_000);
        let summaries: Vec<Summary> = serde_json::from_str(r#"[{"Labels":{"a":"b"}},{}]"#).unwrap();
        assert_eq!(summaries.len(), 2);
    }
}

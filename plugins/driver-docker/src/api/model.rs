//! What the engine answers, as far as it is read. Everything may be missing or null.

use serde::Deserialize;
use std::collections::BTreeMap;

/// Labels of an object.
pub type Labels = Option<BTreeMap<String, String>>;

/// `GET /containers/NAME/json`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Details {
    /// With a slash before it.
    pub name: String,
    /// Its state.
    pub state: State,
    /// What it was made from.
    pub config: Config,
    /// Its limits.
    pub host_config: Limits,
    /// What is on other disks than its own.
    pub mounts: Option<Vec<Mount>>,
    /// Bytes in its writable layer; only if asked for.
    pub size_rw: Option<i64>,
}

/// A volume or a directory of the node.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Mount {
    /// Where, inside.
    pub destination: String,
}

/// State of a container.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct State {
    /// One word: `created`, `running`, `exited` and so on.
    pub status: String,
    /// Of the first process, once it has ended.
    pub exit_code: i64,
    /// The kernel ended it for want of memory.
    #[serde(rename = "OOMKilled")]
    pub oom_killed: bool,
    /// Why it did not start.
    pub error: Option<String>,
}

/// Configuration of a container.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Config {
    /// Its labels.
    pub labels: Labels,
}

/// Limits of a container.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Limits {
    /// Microseconds per scheduling period.
    pub cpu_period: i64,
    /// Microseconds of CPU in each period.
    pub cpu_quota: i64,
    /// Bytes.
    pub memory: i64,
}

/// One line of `GET /containers/json`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Summary {
    /// Its id.
    pub id: String,
    /// With a slash before each.
    pub names: Option<Vec<String>>,
    /// Its labels.
    pub labels: Labels,
    /// One word, as in [`State::status`].
    pub state: String,
    /// A line for people, such as `Exited (0) 3 minutes ago`.
    pub status: String,
}

/// `GET /images/NAME/json`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Image {
    /// What it is stored by.
    pub graph_driver: Option<Storage>,
}

/// A storage driver.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Storage {
    /// `btrfs`, `overlay2` and so on.
    pub name: String,
}

impl Image {
    /// Whether the limit of a container's disk counts it. So it does where a container is a copy that
    /// shares its blocks with the image; others count what has changed.
    #[must_use]
    pub fn is_counted(&self) -> bool {
        let storage = self
            .graph_driver
            .as_ref()
            .map(|driver| driver.name.as_str());
        storage.is_some_and(|name| ["btrfs", "devicemapper"].contains(&name))
    }
}

/// One line of `GET /images/NAME/history`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Layer {
    /// Bytes of its files.
    pub size: i64,
}

impl Layer {
    /// None where the engine does not know.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.size.try_into().unwrap_or(0)
    }
}

/// `GET /networks/NAME`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NetworkDetails {
    /// Its labels.
    pub labels: Labels,
    /// Its addresses.
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
    /// CIDR.
    pub subnet: String,
}

/// `GET /containers/NAME/stats`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Stats {
    /// When it was read, RFC 3339.
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
    /// Used so far.
    pub cpu_usage: CpuUsage,
}

/// CPU time used.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct CpuUsage {
    /// Nanoseconds.
    pub total_usage: u64,
}

/// Memory of a container.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct MemoryStats {
    /// Bytes, page cache included.
    pub usage: u64,
    /// The limit in force, bytes.
    pub limit: u64,
    /// The kernel's counters, by name. Podman sends none.
    pub stats: Option<BTreeMap<String, u64>>,
}

/// `GET /containers/NAME/top?ps_args=rss`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Resident {
    /// One row per process, of one column: KiB.
    pub processes: Vec<Vec<String>>,
}

impl Resident {
    /// All processes together. What several share is counted for each.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let kib = self.processes.iter().flatten();
        kib.filter_map(|text| text.parse::<u64>().ok()).sum::<u64>() << 10
    }
}

/// `GET /version`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Version {
    /// Of the engine.
    pub version: String,
    /// Of its interface.
    pub api_version: String,
    /// What it is made of; the first is the engine.
    pub components: Option<Vec<Component>>,
}

/// One part of an engine.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Component {
    /// `Engine`, `Podman Engine`.
    pub name: String,
}

/// `GET /info`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Info {
    /// CPUs of the node.
    #[serde(rename = "NCPU")]
    pub ncpu: u32,
    /// Bytes of RAM of the node.
    pub mem_total: u64,
    /// Storage driver.
    pub driver: String,
    /// What it says of itself: names and values.
    pub driver_status: Option<Vec<Vec<String>>>,
    /// `1` or `2`.
    pub cgroup_version: String,
    /// A Podman without root says so here,
    pub rootless: bool,
    /// and a Docker here.
    pub security_options: Option<Vec<String>>,
    /// Where a Docker that has the Container Device Interface looks for its files.
    #[serde(rename = "CDISpecDirs")]
    pub cdi_spec_dirs: Option<Vec<String>>,
}

impl Info {
    /// Whether the engine runs without root.
    #[must_use]
    pub fn is_rootless(&self) -> bool {
        let mut options = self.security_options.iter().flatten();
        self.rootless || options.any(|option| option == "name=rootless")
    }

    /// Whether images and containers are in containerd's store, not in a storage driver of the engine's.
    #[must_use]
    pub fn has_snapshotter(&self) -> bool {
        self.driver_says("driver-type")
            .is_some_and(|kind| kind.starts_with("io.containerd.snapshotter"))
    }

    /// What the storage driver says of itself by that name.
    #[must_use]
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
    fn nulls_and_strangers_are_taken() {
        let text = r#"{"State":{"Status":"running","OOMKilled":false,"Health":null},"Config":{"Labels":null},
            "HostConfig":{"CpuQuota":100000,"StorageOpt":null,"Memory":1},"Mounts":[]}"#;
        let details: Details = serde_json::from_str(text).unwrap();
        assert_eq!(details.state.status, "running");
        assert_eq!(details.host_config.cpu_quota, 100_000);
        let summaries: Vec<Summary> = serde_json::from_str(r#"[{"Labels":{"a":"b"}},{}]"#).unwrap();
        assert_eq!(summaries.len(), 2);
    }
}

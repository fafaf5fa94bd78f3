//! The bodies of requests that create a container or change its limits.

mod libpod;

use crate::api::model::Limits;
use crate::gpu::{self, DeviceRequest};
use crate::settings::Settings;
use crate::units::{GIB, MIB};
use crate::vm::Device;
use crate::{lxcfs, names, vm};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use wharf_guest::{PublishedPort, ResourceType, Size, Spec};

/// The scheduling period in microseconds; the kernel's default.
const CPU_PERIOD: u64 = 100_000;
/// Maximum size of the console log of an instance.
const LOG_MAX_SIZE: &str = "10m";

/// `POST /containers/create`
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Creation {
    image: String,
    hostname: String,
    labels: BTreeMap<&'static str, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    env: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cmd: Vec<String>,
    exposed_ports: BTreeMap<String, Empty>,
    host_config: HostConfig,
    networking_config: Networking,
}

/// `POST /containers/NAME/update`. It uses a quota, since some engines cannot update `NanoCpus`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Update {
    cpu_period: u64,
    cpu_quota: u64,
    memory: u64,
    memory_swap: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
struct HostConfig {
    network_mode: String,
    #[serde(flatten)]
    size: Update,
    pids_limit: u32,
    /// The engine's default capabilities are never extended.
    cap_drop: [&'static str; 1],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    security_opt: Vec<&'static str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    sysctls: BTreeMap<&'static str, &'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shm_size: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    mounts: Vec<lxcfs::Mount>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    devices: Vec<Device>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    device_requests: Vec<DeviceRequest>,
    restart_policy: Name,
    log_config: LogConfig,
    port_bindings: BTreeMap<String, Vec<Binding>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    storage_opt: BTreeMap<&'static str, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    dns: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ulimits: Vec<Ulimit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    userns_mode: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Empty {}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Name {
    name: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
struct LogConfig {
    r#type: &'static str,
    config: BTreeMap<&'static str, &'static str>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Binding {
    host_ip: String,
    host_port: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Ulimit {
    name: String,
    soft: u64,
    hard: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Networking {
    endpoints_config: BTreeMap<String, Endpoint>,
}

/// An instance's address on a network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Endpoint {
    #[serde(rename = "IPAMConfig")]
    ipam_config: Address,
    #[serde(skip_serializing_if = "Option::is_none")]
    mac_address: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Address {
    #[serde(rename = "IPv4Address")]
    ipv4_address: String,
}

impl Endpoint {
    /// Creates an endpoint with this address.
    #[must_use]
    pub fn at(address: &str) -> Self {
        Self {
            ipam_config: Address {
                ipv4_address: address.to_owned(),
            },
            mac_address: mac(address),
        }
    }
}

/// Derives a MAC address from an IPv4 address, by dockerd's rule. Podman picks a random one at each
/// start; the node's stale ARP entry then blocks the instance for up to a minute.
fn mac(address: &str) -> Option<String> {
    let [a, b, c, d] = address.parse::<Ipv4Addr>().ok()?.octets();
    Some(format!("02:42:{a:02x}:{b:02x}:{c:02x}:{d:02x}"))
}

impl Update {
    /// Computes the limits of a size. There is no swap.
    #[must_use]
    pub fn of(size: &Size, what: ResourceType) -> Self {
        let memory = u64::from(size.mem_gib) * GIB + vm::memory_overhead(what);
        Self {
            cpu_period: CPU_PERIOD,
            cpu_quota: u64::from(size.n_vcpus) * CPU_PERIOD,
            memory,
            memory_swap: memory,
        }
    }
}

impl Update {
    /// RAM, in bytes.
    #[must_use]
    pub fn memory(&self) -> u64 {
        self.memory
    }

    /// Returns whether these limits are in effect.
    #[must_use]
    pub fn is(&self, limits: &Limits) -> bool {
        Self::before(limits).as_ref() == Some(self)
    }

    /// The body for Podman's own interface.
    #[must_use]
    pub fn libpod(&self) -> Value {
        json!({
            "cpu": { "period": self.cpu_period, "quota": self.cpu_quota },
            "memory": { "limit": self.memory, "swap": self.memory_swap },
        })
    }

    /// Reads a container's current limits. None if one is missing or has another form.
    #[must_use]
    pub fn before(limits: &Limits) -> Option<Self> {
        let positive = |n: i64| u64::try_from(n).ok().filter(|n| *n > 0);
        let memory = positive(limits.memory)?;
        Some(Self {
            cpu_period: positive(limits.cpu_period)?,
            cpu_quota: positive(limits.cpu_quota)?,
            memory,
            memory_swap: memory,
        })
    }
}

/// Options of a creation. The driver drops an option that the engine does not support.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Limit the size of the disk.
    pub disk_limit: bool,
    /// Pass the node's `/dev/kvm` to the container.
    pub kvm: bool,
    /// Show the container its own CPUs and memory, with the node's lxcfs.
    pub own_view: bool,
}

/// A part of a container that an engine takes at the creation, and may refuse at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// See [`Options::kvm`].
    Kvm,
    /// See [`Options::own_view`].
    View,
}

impl Options {
    /// Continues without a part.
    pub fn drop(&mut self, part: Part) {
        match part {
            Part::Kvm => self.kvm = false,
            Part::View => self.own_view = false,
        }
    }
}

/// The image of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Image<'a> {
    /// The engine's reference to it.
    pub reference: &'a str,
    /// Bytes that count towards the limit of a disk; none if the limit counts nothing but files of its own.
    pub counted: Option<u64>,
}

impl Creation {
    /// Builds the body for a specification, on the network with this name.
    #[must_use]
    pub fn new(
        spec: &Spec,
        settings: &Settings,
        image: Image<'_>,
        network: String,
        mut labels: BTreeMap<&'static str, String>,
        options: Options,
    ) -> Self {
        let what = spec.resource_type;
        let environment = &spec.blueprint.environment;
        let mut storage_opt = BTreeMap::new();
        if what == ResourceType::Container {
            let view = lxcfs::label_of(options.own_view);
            labels.insert(names::VIEW, view.to_owned());
        }
        if options.disk_limit {
            labels.insert(names::DISK, disk_size_of(&spec.size, what));
            let limit = disk_limit_of(&spec.size, what, image.counted);
            storage_opt.insert("size", limit);
        }
        Self {
            image: image.reference.to_owned(),
            hostname: spec.hostname.clone(),
            labels,
            env: environment
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect(),
            cmd: spec.blueprint.command.clone(),
            exposed_ports: spec
                .published
                .iter()
                .map(|port| (inside(port), Empty {}))
                .collect(),
            host_config: HostConfig {
                network_mode: network.clone(),
                size: Update::of(&spec.size, what),
                pids_limit: settings.pids_limit,
                cap_drop: vm::cap_drop(what),
                security_opt: vm::security_opt(what),
                sysctls: vm::sysctls(what),
                shm_size: vm::shm_size(&spec.size, what),
                mounts: lxcfs::mounts(what, options.own_view),
                devices: vm::devices(what, options.kvm),
                device_requests: gpu::requests(&spec.gpu_devices),
                restart_policy: Name { name: "no" },
                log_config: LogConfig {
                    r#type: "json-file",
                    config: [("max-size", LOG_MAX_SIZE)].into(),
                },
                port_bindings: bindings(&spec.published, settings),
                storage_opt,
                dns: settings.dns.iter().map(ToString::to_string).collect(),
                ulimits: settings
                    .ulimits
                    .iter()
                    .map(|(name, n)| ulimit(name, *n))
                    .collect(),
                userns_mode: settings.userns.clone(),
            },
            networking_config: Networking {
                endpoints_config: [(network, Endpoint::at(&spec.network.address))].into(),
            },
        }
    }
}

/// The size of a limited disk, for its label.
#[must_use]
pub fn disk_size_of(size: &Size, what: ResourceType) -> String {
    format!("{}G", size.disk_size_gib + vm::disk_overhead_gib(what))
}

/// The limit of a disk in the engines' notation: its size and the counted part of the image.
fn disk_limit_of(size: &Size, what: ResourceType, counted: Option<u64>) -> String {
    match counted {
        None => disk_size_of(size, what),
        Some(bytes) => {
            let own = u64::from(size.disk_size_gib) * GIB;
            format!("{}M", (own + on_disk(bytes)).div_ceil(MIB))
        }
    }
}

/// An upper bound of the disk space of an image with this many bytes. Blocks that are not full and
/// metadata take more than the bytes. Of Wharf's images, `base` has the largest overhead on btrfs:
/// 7 %.
fn on_disk(bytes: u64) -> u64 {
    bytes + bytes / 16 + 64 * MIB
}

fn inside(port: &PublishedPort) -> String {
    format!("{}/tcp", port.instance_port)
}

fn bindings(published: &[PublishedPort], settings: &Settings) -> BTreeMap<String, Vec<Binding>> {
    let mut bindings: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for port in published {
        bindings.entry(inside(port)).or_default().push(Binding {
            host_ip: settings.publish_address.to_string(),
            host_port: port.node_port.to_string(),
        });
    }
    bindings
}

fn ulimit(name: &str, n: u64) -> Ulimit {
    Ulimit {
        name: name.to_owned(),
        soft: n,
        hard: n,
    }
}

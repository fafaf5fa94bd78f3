//! The bodies of requests that create an instance, change its limits, or change its state.

use crate::context::Context;
use crate::owner_network::prefix;
use crate::settings::{Bridge, Mode};
use crate::{digest, id_range, names};
use serde::Serialize;
use std::collections::BTreeMap;
use wharf_guest::{PublishedPort, Size, Spec};

type Device = BTreeMap<&'static str, String>;

/// `POST /1.0/instances`
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Creation {
    name: String,
    r#type: &'static str,
    source: Source,
    /// None: a profile could add devices.
    profiles: [String; 0],
    config: BTreeMap<String, String>,
    devices: BTreeMap<String, Device>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Source {
    r#type: &'static str,
    alias: String,
}

/// `PATCH /1.0/instances/NAME`
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    config: BTreeMap<String, String>,
    devices: BTreeMap<String, Device>,
}

/// `PATCH /1.0/instances/NAME` after a start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StartDone {
    config: BTreeMap<&'static str, &'static str>,
}

impl Default for StartDone {
    fn default() -> Self {
        Self {
            config: [(names::START, names::DONE)].into(),
        }
    }
}

/// `PATCH /1.0/instances/NAME` for another range of ids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Isolation<'a> {
    config: BTreeMap<&'static str, &'a str>,
}

impl<'a> Isolation<'a> {
    /// One of [`id_range::TEXTS`].
    #[must_use]
    pub fn new(text: &'a str) -> Self {
        Self {
            config: [(id_range::ISOLATED, text)].into(),
        }
    }
}

/// `POST /1.0/instances/NAME`
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Move {
    /// The disk goes along.
    pub migration: bool,
}

/// `PUT /1.0/instances/NAME/state`
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Action {
    action: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    force: Option<bool>,
}

impl Action {
    /// A start.
    #[must_use]
    pub fn start() -> Self {
        Self {
            action: "start",
            timeout: None,
            force: None,
        }
    }

    /// A stop that gives up after this time.
    #[must_use]
    pub fn stop(seconds: u32) -> Self {
        Self {
            action: "stop",
            timeout: Some(seconds),
            force: Some(false),
        }
    }

    /// A stop without grace.
    #[must_use]
    pub fn kill() -> Self {
        Self {
            action: "stop",
            timeout: None,
            force: Some(true),
        }
    }
}

impl Creation {
    /// Builds the body for a specification with this image.
    #[must_use]
    pub fn new(ctx: &Context, spec: &Spec, image: &str) -> Self {
        let settings = &ctx.settings;
        let mut config = limits(&spec.size);
        config.extend(place(ctx, spec));
        config.extend(
            [
                ("limits.processes", settings.pids_limit.to_string()),
                // The database alone says what runs.
                ("boot.autostart", "false".to_owned()),
                // Root of one instance is nobody for the others.
                (id_range::ISOLATED, "true".to_owned()),
                (names::INSTALLATION, ctx.installation.to_owned()),
                (names::HOSTNAME, spec.hostname.clone()),
                (names::START, names::BEGUN.to_owned()),
            ]
            .map(|(key, value)| (key.to_owned(), value)),
        );
        let environment = spec.blueprint.environment.iter();
        config.extend(
            environment.map(|(name, value)| (format!("environment.{name}"), value.clone())),
        );
        let mut devices = connected(ctx, spec);
        devices.insert("root".to_owned(), root(&settings.pool, &spec.size));
        Self {
            name: names::instance(ctx.installation, &spec.tag),
            r#type: "container",
            source: Source {
                r#type: "image",
                alias: image.to_owned(),
            },
            profiles: [],
            config,
            devices,
        }
    }
}

impl Change {
    /// Builds the body that gives an instance this size.
    #[must_use]
    pub fn of(ctx: &Context, size: &Size) -> Self {
        Self {
            config: limits(size),
            devices: [("root".to_owned(), root(&ctx.settings.pool, size))].into(),
        }
    }

    /// Builds the body that precedes a start with this size.
    #[must_use]
    pub fn before_start(ctx: &Context, size: &Size) -> Self {
        let mut change = Self::of(ctx, size);
        let begun = (names::START.to_owned(), names::BEGUN.to_owned());
        change.config.extend([begun]);
        change
    }

    /// Builds the body that gives a moved instance its addresses, ports and GPUs on this member.
    #[must_use]
    pub fn of_place(ctx: &Context, spec: &Spec) -> Self {
        Self {
            config: place(ctx, spec),
            devices: connected(ctx, spec),
        }
    }

    /// Whether an instance has this configuration and these sizes.
    #[must_use]
    pub fn is(
        &self,
        config: &BTreeMap<String, String>,
        devices: &BTreeMap<String, BTreeMap<String, String>>,
    ) -> bool {
        let limits = self
            .config
            .iter()
            .all(|(key, value)| config.get(key) == Some(value));
        let root = |name: &str| devices.get(name)?.get("size").map(String::as_str);
        let mut wanted = self.devices.iter();
        limits && wanted.all(|(name, device)| root(name) == device.get("size").map(String::as_str))
    }
}

/// The configuration that depends on the member and the addresses.
fn place(ctx: &Context, spec: &Spec) -> BTreeMap<String, String> {
    let (network, dns) = (&spec.network, &ctx.settings.dns);
    let address = &network.address;
    let net = match &ctx.settings.mode {
        Mode::Bridge(bridge) => format!("{address}/32 {} {dns}", bridge.gateway),
        Mode::Ovn(_) => format!("{address}/{} {} {dns}", prefix(network), network.gateway),
    };
    [
        (names::SPEC.to_owned(), digest::of(spec)),
        (names::NET.to_owned(), net),
    ]
    .into()
}

/// The devices that depend on the member and the addresses.
fn connected(ctx: &Context, spec: &Spec) -> BTreeMap<String, Device> {
    let address = &spec.network.address;
    let mut devices = BTreeMap::new();
    match &ctx.settings.mode {
        Mode::Bridge(bridge) => {
            devices.insert("eth0".to_owned(), bridge_nic(bridge, address));
            let published = spec.published.iter();
            devices.extend(published.map(|port| {
                let name = format!("port{}", port.instance_port);
                (name, proxy(bridge, address, port))
            }));
        }
        Mode::Ovn(_) => {
            let network = names::network(ctx.installation, &spec.network.gateway);
            devices.insert("eth0".to_owned(), nic(network, address).into());
        }
    }
    let gpus = spec.gpu_devices.iter().enumerate();
    devices.extend(gpus.map(|(n, pci)| (format!("gpu{n}"), gpu(pci))));
    devices
}

/// The kernel pins an instance to this number of CPUs.
fn limits(size: &Size) -> BTreeMap<String, String> {
    [
        ("limits.cpu".to_owned(), size.n_vcpus.to_string()),
        ("limits.memory".to_owned(), memory(size)),
    ]
    .into()
}

/// The limit of memory, as in the instance's configuration.
#[must_use]
pub fn memory(size: &Size) -> String {
    format!("{}GiB", size.mem_gib)
}

fn root(pool: &str, size: &Size) -> Device {
    [
        ("type", "disk".to_owned()),
        ("path", "/".to_owned()),
        ("pool", pool.to_owned()),
        ("size", format!("{}GiB", size.disk_size_gib)),
    ]
    .into()
}

fn nic(network: String, address: &str) -> [(&'static str, String); 4] {
    [
        ("type", "nic".to_owned()),
        ("name", "eth0".to_owned()),
        ("network", network),
        ("ipv4.address", address.to_owned()),
    ]
}

/// All owners share the bridge, so it checks addresses.
fn bridge_nic(bridge: &Bridge, address: &str) -> Device {
    let mut device = Device::from(nic(bridge.network.clone(), address));
    device.extend([
        ("security.mac_filtering", "true".to_owned()),
        ("security.ipv4_filtering", "true".to_owned()),
        ("security.ipv6_filtering", "true".to_owned()),
        ("security.port_isolation", bridge.port_isolation.clone()),
    ]);
    device
}

/// A rule of the node's firewall, not a process. A proxy with `bind` would connect from the node.
fn proxy(bridge: &Bridge, address: &str, port: &PublishedPort) -> Device {
    let listen = format!("tcp:{}:{}", bridge.publish_address, port.node_port);
    [
        ("type", "proxy".to_owned()),
        ("nat", "true".to_owned()),
        ("listen", listen),
        ("connect", format!("tcp:{address}:{}", port.instance_port)),
    ]
    .into()
}

fn gpu(pci: &str) -> Device {
    [
        ("type", "gpu".to_owned()),
        ("gputype", "physical".to_owned()),
        ("pci", pci.to_owned()),
    ]
    .into()
}

//! The runtime with real components: the embedded plugins and a faulty one.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod faults;
mod loading;
mod whole;

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use wharf_domain::blueprint::{Blueprint, Health, Image};
use wharf_domain::capacity::Size;
use wharf_domain::driver::{DriverTarget, InstanceNetwork, PublishedPort, Spec, Tag};
use wharf_domain::ids::{Generation, InstanceId, NodeId};
use wharf_domain::instance::ResourceType;
use wharf_engine::{EngineEndpoint, Transport};
use wharf_plugin::{
    CacheUse, CallLimits, DriverNodeConfig, NodeDriver, NodeLimits, Plugins, PluginsConfig,
};
use wharf_simulated::{SimulatedEngine, SimulatedError};

/// Cargo's target directory, with what `cargo xtask test` has built.
fn target() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    workspace.join(target)
}

/// A directory that is removed after the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("wharf-plugins-{}-{n}", std::process::id()));
        std::fs::create_dir_all(path.join("plugins")).unwrap();
        Self(path)
    }

    fn config(&self, limits: CallLimits) -> PluginsConfig {
        PluginsConfig {
            shipped: Some(target().join("lib/wharf/plugins")),
            ..self.without_shipped(limits)
        }
    }

    fn without_shipped(&self, limits: CallLimits) -> PluginsConfig {
        PluginsConfig {
            flavors: Vec::new(),
            cache: CacheUse::Keep(self.0.join("cache")),
            shipped: None,
            plugins_dir: Some(self.0.join("plugins")),
            pins: BTreeMap::new(),
            limits,
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

fn node(plugins: &Plugins, driver: &str, endpoint: &str, settings: Value) -> NodeDriver {
    plugins
        .node(DriverNodeConfig {
            name: NodeId("n1".into()),
            driver: driver.into(),
            installation: "home".into(),
            transport: transport(endpoint, &settings).unwrap(),
            settings,
            limits: NodeLimits::default(),
        })
        .unwrap()
}

fn transport(endpoint: &str, settings: &Value) -> Result<Transport, SimulatedError> {
    match EngineEndpoint::parse(endpoint).unwrap() {
        EngineEndpoint::Unix(socket) => Ok(Transport::unix(&socket)),
        EngineEndpoint::Https { .. } => panic!("no certificates"),
        EngineEndpoint::Simulated(file) => {
            SimulatedEngine::open(settings, file.as_deref(), None).map(Transport::in_process)
        }
    }
}

fn id(n: u128) -> InstanceId {
    InstanceId(uuid::Uuid::from_u128(n))
}

fn spec(n: u32) -> Spec {
    Spec {
        target: DriverTarget {
            tag: Tag {
                instance: id(n.into()),
                incarnation: 1,
            },
            generation: Generation(5),
            resource_type: ResourceType::Container,
            size: Size {
                n_vcpus: 1,
                mem_gib: 2,
                disk_size_gib: 10,
            },
            network: InstanceNetwork {
                id: "o1".into(),
                subnet: "10.0.0.0/8".parse().unwrap(),
                gateway: "10.0.0.1".parse().unwrap(),
                address: std::net::Ipv4Addr::from(0x0a00_0010 + n),
            },
            public_network: None,
            wan_ports: Vec::new(),
            volumes: Vec::new(),
        },
        hostname: format!("h{n}"),
        published: if n < 40_000 {
            vec![PublishedPort {
                node_port: 20_000 + n as u16,
                instance_port: 22,
                private: false,
            }]
        } else {
            Vec::new()
        },
        private_address: None,
        gpu_devices: Vec::new(),
        source: None,
        fetched: false,
        may_exist: false,
        image_is_trusted: false,
        blueprint: Arc::new(Blueprint {
            images: vec![Image {
                engine_kind: "simulated".into(),
                reference: "base:1".into(),
            }],
            files: Vec::new(),
            environment: Vec::new(),
            command: Vec::new(),
            health: Health::Ssh,
            ssh: true,
            web_port: None,
        }),
    }
}

//! The plugins of a configuration, and the driver of each node.

use crate::node_tls::{self, NodeTls, WrongNodeTls};
use crate::proofs;
use crate::registries;
use crate::server::StartError;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wharf_config::{Config, FlavorConfig, NodeConfig};
use wharf_db::{Db, Read};
use wharf_domain::capacity::Size;
use wharf_domain::error::Error;
use wharf_domain::flavor::Flavor;
use wharf_domain::ids::NodeId;
use wharf_domain::instance::ResourceType;
use wharf_engine::{EngineEndpoint, Transport};
use wharf_plugin::{CacheUse, LoadedDriver, NodeDriver, OwnFlavor, Plugins, PluginsConfig};
use wharf_sanity::Drivers;
use wharf_simulated::SimulatedEngine;

/// Compares a database with the engines of a configuration.
pub async fn compare_engines(config: &Config, db: &Db) -> Result<Vec<String>, StartError> {
    let cache = CacheUse::Keep(config.data_dir.join(CACHE));
    let (_plugins, drivers) = drivers(config, &installation(db)?, cache).await?;
    Ok(wharf_operations::engines::compare_engines(db, &drivers).await?)
}

/// Loads the plugins, and makes the driver of each node, for a check. It writes nothing into `data_dir`,
/// because the check may run under another account than the server. It reads the server's compiled plugins
/// if only this account can have written them.
pub async fn drivers_for_check(
    config: &Config,
    installation: &str,
) -> Result<(Plugins, BTreeMap<NodeId, NodeDriver>), StartError> {
    let cache = CacheUse::Read(config.data_dir.join(CACHE));
    drivers(config, installation, cache).await
}

/// The directory of compiled plugins, in `data_dir`.
pub const CACHE: &str = "plugins-cache";

/// The value of the label of all objects of this installation in engines.
pub fn installation(db: &Db) -> Result<String, Error> {
    let id = db.read(|rows| rows.installation())?;
    Ok(id.hyphenated().to_string())
}

/// The directory of the compiled plugins that came with the program: `PREFIX/lib/wharf/plugins` for
/// `PREFIX/bin/wharf`.
fn shipped_plugins() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let prefix = program.parent()?.parent()?;
    Some(prefix.join("lib/wharf/plugins"))
}

/// Loads the plugins, and makes the driver of each node.
pub async fn drivers(
    config: &Config,
    installation: &str,
    cache: CacheUse,
) -> Result<(Plugins, BTreeMap<NodeId, NodeDriver>), StartError> {
    let plugins = Plugins::load(plugins_config(config, cache)).await?;
    proofs::check(config, &plugins)?;
    plugins.registries().replace(&registries::read_all(config)?);
    let mut drivers = BTreeMap::new();
    for node in &config.node {
        let driver = driver(config, &plugins, node, installation)?;
        drivers.insert(NodeId(node.name.clone()), driver);
    }
    Ok((plugins, drivers))
}

fn plugins_config(config: &Config, cache: CacheUse) -> PluginsConfig {
    let limits = &config.limits;
    PluginsConfig {
        cache,
        shipped: shipped_plugins(),
        plugins_dir: config.plugins_dir.clone(),
        pins: config.plugins.hashes.clone(),
        flavors: config.flavor.iter().map(own_flavor).collect(),
        limits: wharf_plugin::CallLimits {
            memory: limits.guest_memory_mib << 20,
            cpu: Duration::from_millis(limits.call_cpu_ms),
            wall: Duration::from_millis(limits.call_timeout_ms),
            ..wharf_plugin::CallLimits::default()
        },
    }
}

/// Loads one driver alone for the sanity suite, on a node of the configuration.
pub async fn drivers_to_prove(
    config: &Config,
    file: &Path,
    name: &str,
) -> Result<(NodeConfig, LoadedDriver, Drivers)> {
    let mut nodes = config.node.iter();
    let Some(own) = nodes.find(|node| node.name == name) else {
        let names: Vec<_> = config.node.iter().map(|node| node.name.as_str()).collect();
        bail!(
            "no node {name:?}; the configuration has {}",
            names.join(", ")
        );
    };
    let peer = config.node.iter().find(|node| {
        let is_same = node.driver == own.driver && node.cluster == own.cluster;
        is_same && own.cluster.is_some() && node.name != own.name
    });
    let is_simulated = own.endpoint.starts_with("simulated:");
    let without_engine = (!is_simulated).then(|| NodeConfig {
        endpoint: "unix:///nonexistent/engine.sock".to_owned(),
        tls: None,
        ..own.clone()
    });
    let cache = CacheUse::Read(config.data_dir.join(CACHE));
    let loaded = PluginsConfig {
        flavors: Vec::new(),
        ..plugins_config(config, cache)
    };
    let plugins = Plugins::load_driver(loaded, file).await?;
    let (one, two) = (
        wharf_sanity::new_installation(),
        wharf_sanity::new_installation(),
    );
    let of = |node: &_, installation: &str| driver(config, &plugins, node, installation);
    let drivers = Drivers {
        own: of(own, &one)?,
        peer: peer.map(|peer| of(peer, &one)).transpose()?,
        other: of(own, &two)?,
        without_engine: without_engine.map(|node| of(&node, &one)).transpose()?,
    };
    let loaded = plugins.drivers().next().context("no driver")?;
    Ok((own.clone(), loaded, drivers))
}

/// A flavor of the configuration. It runs in containers.
fn own_flavor(given: &FlavorConfig) -> OwnFlavor {
    let web = given.web_port.map(|port| (port, given.web_path.clone()));
    let description = given.description.clone();
    OwnFlavor {
        flavor: Flavor {
            name: given.name.clone(),
            description: description.unwrap_or_else(|| format!("The image {}.", given.image)),
            resource_types: vec![ResourceType::Container],
            ssh: given.ssh && web.is_none(),
            web: web.is_some(),
            web_auth: given.web_auth,
            s3_prefill: false,
            ai: false,
            gpu_aware: false,
            minimum: Size {
                n_vcpus: given.minimum.n_vcpus,
                mem_gib: given.minimum.mem_gib,
                disk_size_gib: given.minimum.disk_size_gib,
            },
        },
        image: given.image.clone(),
        ssh: given.ssh,
        web,
        command: given.command.clone(),
    }
}

fn driver(
    config: &Config,
    plugins: &Plugins,
    node: &NodeConfig,
    installation: &str,
) -> Result<NodeDriver, StartError> {
    let endpoint =
        EngineEndpoint::parse(&node.endpoint).map_err(|source| StartError::Endpoint {
            node: node.name.clone(),
            source,
        })?;
    let settings = serde_json::to_value(&node.settings).map_err(|error| StartError::Settings {
        node: node.name.clone(),
        message: error.to_string(),
    })?;
    let wrong_tls = |error| WrongNodeTls::of(node, error);
    if !matches!(endpoint, EngineEndpoint::Https { .. }) {
        node_tls::check_unused(node).map_err(wrong_tls)?;
    }
    let transport = match endpoint {
        EngineEndpoint::Unix(socket) => Transport::unix(&socket),
        EngineEndpoint::Https { host, port } => {
            let NodeTls {
                server_name,
                config,
            } = node_tls::read(node, &host).map_err(wrong_tls)?;
            Transport::tls(host, port, server_name, config)
        }
        EngineEndpoint::Simulated(file) => {
            let engine = SimulatedEngine::open(&settings, file.as_deref(), node.cluster.as_deref());
            Transport::in_process(engine.map_err(|source| StartError::Simulated {
                node: node.name.clone(),
                source,
            })?)
        }
    };
    Ok(plugins.node(wharf_plugin::DriverNodeConfig {
        name: NodeId(node.name.clone()),
        driver: node.driver.clone(),
        installation: installation.to_owned(),
        transport,
        settings,
        limits: wharf_plugin::NodeLimits {
            changes: config.limits.calls_per_node,
            ..wharf_plugin::NodeLimits::default()
        },
    })?)
}

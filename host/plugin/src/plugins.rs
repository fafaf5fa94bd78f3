//! All plugins of the process.

use super::cache::Cache;
use super::call::CallRunner;
use super::config::{DriverNodeConfig, PluginsConfig};
use super::driver::GuestDriver;
use super::driver_calls::NodeDriver;
use super::error::LoadError;
use super::flavors::Flavors;
use super::load::{self, DriverPlugin};
use super::metrics::PluginMetrics;
use super::pin::{self, Sources};
use super::request_files::RequestFiles;
use super::runtime;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use wharf_domain::blueprint::Blueprint;
use wharf_domain::driver::PluginError;
use wharf_domain::flavor::{BlueprintRequest, Flavor};
use wharf_engine::{EngineNode, Offers, Registries};

/// The loaded plugins. Cheap to clone.
#[derive(Clone)]
pub struct Plugins(pub(super) Arc<LoadedPlugins>, Arc<Offers>);

pub(super) struct LoadedPlugins {
    pub(super) runner: Arc<CallRunner>,
    pub(super) drivers: BTreeMap<String, Arc<DriverPlugin>>,
    request_files: RequestFiles,
    flavors: Flavors,
    registries: Arc<Registries>,
}

/// A loaded driver: its files by their hashes, as `[plugins]` of the configuration has them.
#[derive(Debug, Clone)]
pub struct LoadedDriver {
    /// The plugin's name, such as `driver-x`.
    pub name: String,
    /// The hash of its component.
    pub component: String,
    /// The hash of the request file for its kind of engine.
    pub requests: String,
    /// Its kind of engine.
    pub engine_kind: String,
    /// Whether the component is that of the program.
    pub is_embedded: bool,
}

impl Plugins {
    /// Compiles and checks every plugin, and calls it once. Needs a tokio runtime.
    pub async fn load(config: PluginsConfig) -> Result<Self, LoadError> {
        let sources = load::sources(config.plugins_dir.as_deref(), &config.pins)?;
        let request_files = RequestFiles::read(config.plugins_dir.as_deref(), &config.pins)?;
        Self::of(config, sources, request_files).await
    }

    /// Compiles and checks one driver, whatever the directory of plugins has: a file, with its request file
    /// beside it, or the driver of the program with this name. Needs a tokio runtime.
    pub async fn load_driver(config: PluginsConfig, driver: &Path) -> Result<Self, LoadError> {
        let (name, wasm) = load::driver_source(driver)?;
        let beside = driver.with_file_name(format!("{name}{}", pin::REQUESTS));
        let paths = if load::is_wasm(driver) {
            vec![beside]
        } else {
            Vec::new()
        };
        let request_files = RequestFiles::of_files(&paths, &config.pins)?;
        Self::of(config, [(name, wasm)].into(), request_files).await
    }

    /// The flavors of a configuration alone. Needs a tokio runtime.
    pub async fn of_flavors(config: PluginsConfig) -> Result<Self, LoadError> {
        let request_files = RequestFiles::of_files(&[], &config.pins)?;
        Self::of(config, Sources::new(), request_files).await
    }

    async fn of(
        config: PluginsConfig,
        sources: Sources,
        request_files: RequestFiles,
    ) -> Result<Self, LoadError> {
        let runner = CallRunner::new(runtime::engine(&config.limits)?, config.limits)?;
        let cache = Cache::open(&config.cache, config.shipped.as_deref());
        let mut drivers = BTreeMap::new();
        let mut flavors = Flavors::default();
        for (name, wasm) in &sources {
            match name.strip_prefix("driver-") {
                Some(driver) => {
                    let plugin = load::driver(&runner, &cache, name, wasm).await?;
                    drivers.insert(driver.to_owned(), Arc::new(plugin));
                }
                None => flavors.add(&runner, &cache, name, wasm).await?,
            }
        }
        for flavor in config.flavors {
            flavors.add_own(flavor)?;
        }
        let loaded = LoadedPlugins {
            runner: Arc::new(runner),
            drivers,
            request_files,
            flavors,
            registries: Arc::default(),
        };
        Ok(Self(Arc::new(loaded), Arc::default()))
    }

    /// Content on its way to and from the engines of nodes.
    pub fn offers(&self) -> &Arc<Offers> {
        &self.1
    }

    /// The operator's accounts at registries of images, none at first. No plugin sees them.
    pub fn registries(&self) -> &Registries {
        &self.0.registries
    }

    /// The same plugins, with no content on its way.
    pub fn without_offers(&self) -> Self {
        Self(Arc::clone(&self.0), Arc::default())
    }

    /// The drivers that have a request file. No node can have another one.
    pub fn drivers(&self) -> impl Iterator<Item = LoadedDriver> {
        self.0.drivers.values().filter_map(|plugin| {
            let requests = self.0.request_files.of(&plugin.name, &plugin.engine_kind);
            let requests = requests.ok()?;
            Some(LoadedDriver {
                name: plugin.name.to_string(),
                component: plugin.hash.clone(),
                requests: requests.hash.clone(),
                engine_kind: plugin.engine_kind.clone(),
                is_embedded: plugin.is_embedded,
            })
        })
    }

    /// Figures about calls of plugins.
    pub fn metrics(&self) -> &PluginMetrics {
        self.0.runner.metrics()
    }

    /// The flavors on offer, by name.
    pub fn flavors(&self) -> &[Arc<Flavor>] {
        self.0.flavors.list()
    }

    /// Whether the program or the configuration names the images of this flavor. An installed plugin does not count.
    pub fn has_trusted_images(&self, flavor: &str) -> bool {
        self.0.flavors.has_trusted_images(flavor)
    }

    /// Asks the flavor's provider for a blueprint; [`PluginError::NotFound`] for an unknown flavor.
    pub async fn blueprint(
        &self,
        request: &BlueprintRequest,
    ) -> Result<Arc<Blueprint>, PluginError> {
        if let Some(own) = self.0.flavors.own(&request.flavor.name) {
            let drivers = self.0.drivers.values();
            let kinds: BTreeSet<_> = drivers.map(|driver| driver.engine_kind.as_str()).collect();
            return Ok(own.blueprint(kinds.into_iter(), request));
        }
        self.0.flavors.blueprint(&self.0.runner, request).await
    }

    /// The driver of one node, with the node's queues and connections: call it once for each node,
    /// within a tokio runtime. The engine need not be up yet.
    pub fn node(&self, config: DriverNodeConfig) -> Result<NodeDriver, LoadError> {
        let inner = &*self.0;
        let plugin = inner
            .drivers
            .get(&config.driver)
            .ok_or_else(|| LoadError::UnknownDriver {
                node: config.name.0.clone(),
                driver: config.driver.clone(),
                known: inner.drivers.keys().cloned().collect(),
            })?;
        let node = config.name.0.clone();
        let file = inner.request_files.of(&plugin.name, &plugin.engine_kind)?;
        let file = &file.file;
        let offers = Arc::clone(&self.1);
        let engine = EngineNode::open(
            config.name,
            config.transport,
            file,
            &config.settings,
            offers,
            Arc::clone(&inner.registries),
        );
        let engine = engine.map_err(|source| LoadError::Node { node, source })?;
        let settings = if config.settings.is_null() {
            "{}".to_owned()
        } else {
            config.settings.to_string()
        };
        Ok(NodeDriver::new(GuestDriver::new(
            Arc::clone(&inner.runner),
            Arc::clone(plugin),
            engine,
            config.installation,
            settings,
            config.limits,
        )))
    }
}

impl std::fmt::Debug for Plugins {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let flavors: Vec<_> = self.flavors().iter().map(|flavor| &flavor.name).collect();
        f.debug_struct("Plugins")
            .field("drivers", &self.0.drivers.keys())
            .field("flavors", &flavors)
            .finish()
    }
}

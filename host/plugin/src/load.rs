//! The loading of plugins: a plugin is compiled, its imports and exports are checked, and it is called
//! once.

use super::bindings::{
    FlavorProviderPre, NodeDriverPre, NodeDriverWithContentPre, NodeDriverWithIdentityPre,
    NodeDriverWithMovesPre, NodeDriverWithPortsPre, NodeDriverWithSnapshotsPre,
    NodeDriverWithSurveyPre, NodeDriverWithVolumesPre,
};
use super::cache::Cache;
use super::call::{Call, CallRunner, TRANSFER};
use super::embedded::EMBEDDED;
use super::error::LoadError;
use super::guest::Guest;
use super::imports;
use super::pin::{self, Sources, is_request_file};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tracing::info;
use wasmtime::component::{Component, InstancePre, Linker};

/// Imports of every plugin.
const ALL: &[&str] = &["wharf:plugin/types", "wharf:plugin/log"];
/// Further imports of drivers.
const DRIVERS: &[&str] = &["wharf:plugin/driver-types", "wharf:plugin/engine"];
/// Optional exports of drivers.
const PORTS: &str = "wharf:plugin/ports";
const IDENTITY: &str = "wharf:plugin/identity";
const SURVEY: &str = "wharf:plugin/survey";
const MOVES: &str = "wharf:plugin/moves";
const CONTENT: &str = "wharf:plugin/content";
const VOLUMES: &str = "wharf:plugin/volumes";
const SNAPSHOTS: &str = "wharf:plugin/snapshots";
/// The package version of this host.
const VERSION: &str = "0.1.0";

/// A loaded driver.
pub struct DriverPlugin {
    /// Its file's name without `.wasm`.
    pub name: Arc<str>,
    /// Its pre-instantiated component.
    pub pre: NodeDriverPre<Guest>,
    /// Its component with the interface `ports`, if it exports that.
    pub with_ports: Option<NodeDriverWithPortsPre<Guest>>,
    /// Its component with the interface `identity`, if it exports that.
    pub with_identity: Option<NodeDriverWithIdentityPre<Guest>>,
    /// Its component with the interface `survey`, if it exports that.
    pub with_survey: Option<NodeDriverWithSurveyPre<Guest>>,
    /// Its component with the interface `moves`, if it exports that.
    pub with_moves: Option<NodeDriverWithMovesPre<Guest>>,
    /// Its component with the interface `content`, if it exports that.
    pub with_content: Option<NodeDriverWithContentPre<Guest>>,
    /// Its component with the interface `volumes`, if it exports that.
    pub with_volumes: Option<NodeDriverWithVolumesPre<Guest>>,
    /// Its component with the interface `snapshots`, if it exports that.
    pub with_snapshots: Option<NodeDriverWithSnapshotsPre<Guest>>,
    /// The kind of engine it drives.
    pub engine_kind: String,
    /// The hash of its component.
    pub hash: String,
    /// Whether its component is that of the program.
    pub is_embedded: bool,
}

/// The embedded plugins. Plugins of the directory add to them or replace them.
pub fn sources(
    directory: Option<&Path>,
    pins: &BTreeMap<String, String>,
) -> Result<Sources, LoadError> {
    let mut sources: Sources = EMBEDDED
        .iter()
        .map(|(name, wasm)| ((*name).to_owned(), Cow::Borrowed(*wasm)))
        .collect();
    let Some(directory) = directory else {
        pin::check(pins, &sources)?;
        return Ok(sources);
    };
    let pinned = pins.keys().any(|file| !is_request_file(file));
    for path in read_directory(directory)? {
        if !is_wasm(&path) {
            continue;
        }
        let stem = path
            .file_stem()
            .and_then(|stem| stem.to_str())
            .unwrap_or_default()
            .to_owned();
        if !is_plugin_name(&stem) {
            return Err(LoadError::Name {
                name: path
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned(),
            });
        }
        if pinned && !pins.contains_key(&format!("{stem}.wasm")) {
            return Err(LoadError::Unpinned { plugin: stem });
        }
        let wasm = read(&path)?;
        let replaced = sources.insert(stem.clone(), Cow::Owned(wasm)).is_some();
        info!(plugin = stem, file = %path.display(), replaced, "plugin from the plugins directory");
    }
    pin::check(pins, &sources)?;
    Ok(sources)
}

/// The name and the component of a driver: a file, or the driver of the program with this name.
pub fn driver_source(driver: &Path) -> Result<(String, Cow<'static, [u8]>), LoadError> {
    let stem = driver.file_stem().and_then(|stem| stem.to_str());
    let stem = stem.unwrap_or_default();
    let unknown = || LoadError::NotADriver {
        driver: driver.display().to_string(),
    };
    if is_wasm(driver) {
        if !is_plugin_name(stem) || !stem.starts_with("driver-") {
            return Err(unknown());
        }
        return Ok((stem.to_owned(), Cow::Owned(read(driver)?)));
    }
    let name = format!("driver-{}", stem.strip_prefix("driver-").unwrap_or(stem));
    let mut embedded = EMBEDDED.iter();
    let found = embedded.find(|(embedded, _)| *embedded == name);
    let (_, wasm) = found.ok_or_else(unknown)?;
    Ok((name, Cow::Borrowed(*wasm)))
}

/// Whether a file has a component, by its name.
pub fn is_wasm(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "wasm")
}

fn is_plugin_name(stem: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let kinds = ["driver-", "flavors-"];
    let is_of = |kind: &&str| stem.len() > kind.len() && stem.starts_with(*kind);
    stem.bytes().all(is_plain) && kinds.iter().any(is_of)
}

/// Reads a file of a plugin.
pub fn read(path: &Path) -> Result<Vec<u8>, LoadError> {
    std::fs::read(path).map_err(|source| LoadError::Read {
        path: path.to_owned(),
        source,
    })
}

/// The files of the plugins directory.
pub fn read_directory(directory: &Path) -> Result<Vec<PathBuf>, LoadError> {
    let entries = std::fs::read_dir(directory);
    entries
        .and_then(|entries| {
            entries
                .map(|entry| entry.map(|entry| entry.path()))
                .collect()
        })
        .map_err(|source| LoadError::Read {
            path: directory.to_owned(),
            source,
        })
}

/// The optional interfaces of a driver.
struct OptionalWorlds<'a> {
    component: &'a Component,
    linked: &'a InstancePre<Guest>,
    runner: &'a CallRunner,
    name: &'a str,
}

impl OptionalWorlds<'_> {
    /// The component with an interface, if it exports that.
    fn world<P>(
        &self,
        interface: &'static str,
        new: impl FnOnce(InstancePre<Guest>) -> wasmtime::Result<P>,
    ) -> Result<Option<P>, LoadError> {
        if !exports(self.component, self.runner, interface) {
            return Ok(None);
        }
        let pre = new(self.linked.clone());
        pre.map(Some)
            .map_err(|error| export(self.name, interface, &error))
    }
}

/// Loads a driver and asks it for its kind of engine.
pub async fn driver(
    runner: &CallRunner,
    cache: &Cache,
    name: &str,
    wasm: &[u8],
) -> Result<DriverPlugin, LoadError> {
    let component = compile(runner, cache, name, wasm)?;
    let allowed: Vec<_> = ALL.iter().chain(DRIVERS).copied().collect();
    check_imports(&component, runner, name, &allowed)?;
    let linker = imports::driver_linker(runner.engine())
        .map_err(|error| LoadError::Runtime(error.to_string()))?;
    let linked = link(&linker, &component, name)?;
    let pre = NodeDriverPre::new(linked.clone())
        .map_err(|error| export(name, "wharf:plugin/driver", &error))?;
    let optional = OptionalWorlds {
        component: &component,
        linked: &linked,
        runner,
        name,
    };
    let with_ports = optional.world(PORTS, NodeDriverWithPortsPre::new)?;
    let with_identity = optional.world(IDENTITY, NodeDriverWithIdentityPre::new)?;
    let with_survey = optional.world(SURVEY, NodeDriverWithSurveyPre::new)?;
    let with_moves = optional.world(MOVES, NodeDriverWithMovesPre::new)?;
    let with_content = optional.world(CONTENT, NodeDriverWithContentPre::new)?;
    let with_volumes = optional.world(VOLUMES, NodeDriverWithVolumesPre::new)?;
    let with_snapshots = optional.world(SNAPSHOTS, NodeDriverWithSnapshotsPre::new)?;
    let once = pre.clone();
    let engine_kind = runner
        .run(
            first_call(runner, name, "engine-kind"),
            |mut store| async move {
                let guest = once.instantiate_async(&mut store).await?;
                guest
                    .wharf_plugin_driver()
                    .call_engine_kind(&mut store)
                    .await
            },
        )
        .await
        .map_err(|error| LoadError::FirstCall {
            plugin: name.to_owned(),
            why: error.to_string(),
        })?;
    Ok(DriverPlugin {
        name: name.into(),
        pre,
        with_ports,
        with_identity,
        with_survey,
        with_moves,
        with_content,
        with_volumes,
        with_snapshots,
        engine_kind,
        hash: pin::hash(wasm),
        is_embedded: EMBEDDED.contains(&(name, wasm)),
    })
}

/// Loads a flavor provider.
pub fn flavor_provider(
    runner: &CallRunner,
    cache: &Cache,
    name: &str,
    wasm: &[u8],
) -> Result<FlavorProviderPre<Guest>, LoadError> {
    let component = compile(runner, cache, name, wasm)?;
    check_imports(&component, runner, name, ALL)?;
    let linker = imports::flavor_linker(runner.engine())
        .map_err(|error| LoadError::Runtime(error.to_string()))?;
    FlavorProviderPre::new(link(&linker, &component, name)?)
        .map_err(|error| export(name, "wharf:plugin/flavors", &error))
}

/// A call at load time, without an engine.
pub fn first_call(runner: &CallRunner, name: &str, function: &'static str) -> Call {
    Call {
        plugin: name.into(),
        node: None,
        function,
        access: None,
        wall: runner.limits().wall,
        transfer: TRANSFER,
    }
}

fn compile(
    runner: &CallRunner,
    cache: &Cache,
    name: &str,
    wasm: &[u8],
) -> Result<Component, LoadError> {
    cache
        .component(runner.engine(), name, wasm)
        .map_err(|error| LoadError::Component {
            plugin: name.to_owned(),
            why: error.root_cause().to_string(),
        })
}

fn exports(component: &Component, runner: &CallRunner, interface: &str) -> bool {
    let component = component.component_type();
    let mut exports = component.exports(runner.engine());
    exports.any(|(name, _)| name.split('@').next() == Some(interface))
}

/// Checks the imports: a locked-down WASI, and the interfaces of the plugin's world.
fn check_imports(
    component: &Component,
    runner: &CallRunner,
    name: &str,
    allowed: &[&str],
) -> Result<(), LoadError> {
    for (import, _) in component.component_type().imports(runner.engine()) {
        let (interface, version) = import.split_once('@').unwrap_or((import, ""));
        let ours = allowed.contains(&interface) && version == VERSION;
        if !ours && !interface.starts_with("wasi:") {
            return Err(LoadError::Import {
                plugin: name.to_owned(),
                interface: import.to_owned(),
            });
        }
    }
    Ok(())
}

fn link(
    linker: &Linker<Guest>,
    component: &Component,
    name: &str,
) -> Result<InstancePre<Guest>, LoadError> {
    linker.instantiate_pre(component).map_err(|error| {
        let (plugin, interface) = (name.to_owned(), missing(&error));
        // Interfaces that plugins do not get are found before.
        if interface.starts_with("wharf:plugin/") {
            LoadError::Form { plugin, interface }
        } else {
            LoadError::Import { plugin, interface }
        }
    })
}

/// The import that the linker does not have, from the runtime's message: it puts names into
/// backticks.
fn missing(error: &wasmtime::Error) -> String {
    let text = error.to_string();
    let name = text.split('`').nth(1).unwrap_or("something");
    format!("{name} ({})", error.root_cause())
}

fn export(name: &str, interface: &'static str, error: &wasmtime::Error) -> LoadError {
    LoadError::Export {
        plugin: name.to_owned(),
        interface,
        why: error.root_cause().to_string(),
    }
}

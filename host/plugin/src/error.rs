//! Errors of plugins and nodes at start, for the operator.

use super::embedded::EMBEDDED;
use std::path::PathBuf;
use wharf_engine::EngineOpenError;

fn known() -> String {
    let drivers = EMBEDDED.iter();
    let drivers = drivers.filter_map(|(name, _)| name.strip_prefix("driver-"));
    drivers.collect::<Vec<_>>().join(", ")
}

/// A plugin or a node that can't be used as configured.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A file or directory.
    #[error("plugins: {path}", path = path.display())]
    Read {
        /// Its path.
        path: PathBuf,
        /// The error.
        source: std::io::Error,
    },
    /// A file whose name is not that of a plugin.
    #[error("plugins_dir: {name}: a plugin is called driver-NAME.wasm or flavors-NAME.wasm")]
    Name {
        /// The file's name.
        name: String,
    },
    /// A file or name that is no driver's.
    #[error(
        "{driver}: a driver is a file driver-NAME.wasm, or one that is part of Wharf: {}",
        known()
    )]
    NotADriver {
        /// The file or name.
        driver: String,
    },
    /// A plugin that differs from its pinned hash.
    #[error(
        "setting `plugins.{file}`: the plugin is not the pinned one: it has {found}, not {pinned}"
    )]
    Hash {
        /// The file's name.
        file: String,
        /// The hash in the configuration.
        pinned: String,
        /// The plugin's own.
        found: String,
    },
    /// A pinned plugin that does not exist.
    #[error("setting `plugins.{file}`: there is no such plugin")]
    PinnedAbsent {
        /// The file's name.
        file: String,
    },
    /// A plugin of the directory without a hash, where others have one.
    #[error("plugins_dir: {plugin}.wasm has no hash in `[plugins]`, where other plugins have one")]
    Unpinned {
        /// The plugin.
        plugin: String,
    },
    /// A request file whose name is not that of a driver.
    #[error("plugins_dir: {name}: the file is called driver-NAME.requests.toml, as its driver")]
    RequestFileName {
        /// The file's name.
        name: String,
    },
    /// A request file that the operator has not approved.
    #[error(
        "plugins_dir: {file} is not approved. Review it with `wharf plugin check {path}`, then set in \
         `[plugins]`: {file:?} = {found:?}",
        path = path.display()
    )]
    Unapproved {
        /// Its path.
        path: PathBuf,
        /// Its name.
        file: String,
        /// Its hash.
        found: String,
    },
    /// A request file that is not one.
    #[error("{file}: {why}")]
    RequestFile {
        /// Its name.
        file: String,
        /// The error, with its place.
        why: String,
    },
    /// A request file for another kind of engine.
    #[error("{file}: kind: must be {needed:?}, the kind of its driver, not {kind:?}")]
    RequestFileKind {
        /// Its name.
        file: String,
        /// Its kind.
        kind: String,
        /// The kind of the driver.
        needed: String,
    },
    /// A driver for a kind of engine without a request file.
    #[error(
        "plugin {plugin}: there is no request file for {kind:?} engines: put {plugin}.requests.toml into \
         plugins_dir and approve it in `[plugins]`"
    )]
    NoRequestFile {
        /// The plugin.
        plugin: String,
        /// Its kind of engine.
        kind: String,
    },
    /// The runtime.
    #[error("the WebAssembly runtime cannot start: {0}")]
    Runtime(String),
    /// A file that is no component or does not compile.
    #[error("plugin {plugin}: not a usable WebAssembly component: {why}")]
    Component {
        /// The plugin.
        plugin: String,
        /// The error.
        why: String,
    },
    /// A component with a forbidden import.
    #[error("plugin {plugin}: imports {interface}, which this host does not offer to it")]
    Import {
        /// The plugin.
        plugin: String,
        /// The interface.
        interface: String,
    },
    /// A component with an interface of Wharf's in a form that this version does not have.
    #[error(
        "plugin {plugin}: is built for another form of the interface {interface}; build the driver against \
         wit/v0.1 of this version"
    )]
    Form {
        /// The plugin.
        plugin: String,
        /// The interface.
        interface: String,
    },
    /// A component without the exports of its world.
    #[error("plugin {plugin}: does not fit {interface}: {why}")]
    Export {
        /// The plugin.
        plugin: String,
        /// The interface.
        interface: &'static str,
        /// The difference.
        why: String,
    },
    /// A plugin whose first call failed.
    #[error("plugin {plugin}: {why}")]
    FirstCall {
        /// The plugin.
        plugin: String,
        /// The error.
        why: String,
    },
    /// A flavor of two providers.
    #[error("flavor {flavor:?} is offered by both {first} and {second}")]
    DuplicateFlavor {
        /// The flavor.
        flavor: String,
        /// One provider.
        first: String,
        /// The other.
        second: String,
    },
    /// A flavor of the operator's with the name of a provider's.
    #[error(
        "setting `flavor.name`: the plugin {plugin} offers a flavor {flavor:?}; choose another name"
    )]
    OwnFlavor {
        /// The flavor.
        flavor: String,
        /// The provider.
        plugin: String,
    },
    /// A node with an unknown driver.
    #[error("node {node:?}: driver: {driver:?} is not one of {known:?}")]
    UnknownDriver {
        /// The node.
        node: String,
        /// The driver.
        driver: String,
        /// The known drivers.
        known: Vec<String>,
    },
    /// A node whose engine cannot be set up.
    #[error("node {node:?}")]
    Node {
        /// The node.
        node: String,
        /// The error.
        source: EngineOpenError,
    },
}

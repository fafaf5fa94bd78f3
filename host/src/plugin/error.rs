//! Why a plugin or a node can't be used. For the operator, at start.

use crate::engine::OpenError;
use std::path::PathBuf;

/// A plugin or a node that can't be used as configured.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A file or directory.
    #[error("plugins: {path}: {source}", path = path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file whose name says neither driver nor flavor provider.
    #[error("plugins_dir: {name}: a plugin is called driver-NAME.wasm or flavors-NAME.wasm")]
    Name {
        /// The file's name.
        name: String,
    },
    /// The runtime itself.
    #[error("the WebAssembly runtime cannot start: {0}")]
    Runtime(String),
    /// Not a component, or one that does not compile.
    #[error("plugin {plugin}: not a usable WebAssembly component: {why}")]
    Component {
        /// The plugin.
        plugin: String,
        /// What is wrong.
        why: String,
    },
    /// It asks for something that plugins don't get.
    #[error("plugin {plugin}: imports {interface}, which this host does not offer to it")]
    Import {
        /// The plugin.
        plugin: String,
        /// The interface.
        interface: String,
    },
    /// It lacks what it should offer, or offers it with other types.
    #[error("plugin {plugin}: does not fit {interface}: {why}")]
    Export {
        /// The plugin.
        plugin: String,
        /// The interface.
        interface: &'static str,
        /// Where they differ.
        why: String,
    },
    /// Its first call failed or answered nonsense.
    #[error("plugin {plugin}: {why}")]
    FirstCall {
        /// The plugin.
        plugin: String,
        /// What happened.
        why: String,
    },
    /// Two providers offer the same flavor.
    #[error("flavor {flavor:?} is offered by both {first} and {second}")]
    DuplicateFlavor {
        /// The flavor.
        flavor: String,
        /// One provider.
        first: String,
        /// The other.
        second: String,
    },
    /// A node names a driver that isn't there.
    #[error("node {node:?}: driver: {driver:?} is not one of {known:?}")]
    UnknownDriver {
        /// The node.
        node: String,
        /// What it names.
        driver: String,
        /// What there is.
        known: Vec<String>,
    },
    /// A node's engine can't be set up.
    #[error("node {node:?}: {source}")]
    Node {
        /// The node.
        node: String,
        /// Why.
        source: OpenError,
    },
}

//! The plugin runtime: WebAssembly components that drive nodes or offer flavors. The only place
//! that knows wasmtime.
//!
//! A fresh guest serves each call and is dropped after it. Every call has a memory limit, a CPU
//! deadline, a wall-clock deadline and a place in a bounded queue; a trap, a hang or nonsense costs
//! that call only. A driver reaches the engine of its node through [`crate::engine`]; a flavor
//! provider reaches nothing.

mod bindings;
mod blueprints;
mod cache;
mod call;
mod clock;
mod config;
mod convert;
mod driver;
mod embedded;
mod error;
mod flavors;
mod guest;
mod imports;
mod load;
mod meter;
mod plugins;
mod queue;
mod runtime;
#[cfg(test)]
mod tests;

pub use config::{Limits, NodeConfig, NodeLimits, PluginsConfig};
pub use driver::NodeDriver;
pub use error::LoadError;
pub use plugins::Plugins;
pub use runtime::EVENT_INTERVAL;

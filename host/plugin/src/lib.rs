//! The plugin runtime: WebAssembly components that drive nodes or offer flavors. No other module knows
//! wasmtime.
//!
//! Each call has a fresh guest, a memory limit, a CPU limit, a timeout and a place in a bounded queue. A
//! trap, a hang or an invalid answer fails that call only. A driver reaches the engine of its node
//! through [`wharf_engine`]; a flavor provider reaches nothing.

mod bindings;
mod cache;
mod call;
mod clock;
mod config;
mod content;
mod convert;
mod driver;
mod driver_calls;
mod embedded;
mod error;
mod flavors;
mod guest;
mod imports;
mod load;
mod log_sink;
mod meter;
mod metrics;
mod own;
mod pin;
mod plugins;
mod precompile;
mod queue;
mod request_files;
mod review;
mod runtime;
mod snapshots;
mod stdio;
mod volumes;

pub use config::{CacheUse, CallLimits, DriverNodeConfig, NodeLimits, PluginsConfig};
pub use content::ContentCalls;
pub use driver_calls::{DriverCalls, NodeDriver};
pub use embedded::EMBEDDED;
pub use error::LoadError;
pub use metrics::PluginMetrics;
pub use own::{OwnFlavor, first_boot};
pub use plugins::{LoadedDriver, Plugins};
pub use precompile::precompile;
pub use review::Review;
pub use runtime::EVENT_INTERVAL;
pub use snapshots::SnapshotCalls;
pub use volumes::VolumeCalls;

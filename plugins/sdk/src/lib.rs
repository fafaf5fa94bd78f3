//! The crate for writing Wharf plugins in Rust.
//!
//! A plugin is a WebAssembly component of one of the worlds in `wit/`. It is a `cdylib` crate that
//! implements one trait and names the type once:
//!
//! ```ignore
//! struct MyFlavors;
//!
//! impl wharf_guest::FlavorProvider for MyFlavors { /* … */ }
//!
//! wharf_guest::export_flavors!(MyFlavors);
//! ```
//!
//! | world | trait | macro |
//! |---|---|---|
//! | `flavor-provider` | [`FlavorProvider`] | [`export_flavors!`] |
//! | `node-driver` | [`Driver`] | [`export_driver!`] |
//! | `node-driver-with-ports` | [`Driver`] and [`Ports`] | [`export_driver_with_ports!`] |
//! | `node-driver-with-identity` | [`Driver`] and [`Identity`] | [`export_driver_with_identity!`] |
//! | `node-driver-with-survey` | [`Driver`] and [`Survey`] | [`export_survey!`] beside another |
//! | `node-driver-with-moves` | [`Driver`] and [`Moves`] | [`export_moves!`] beside another |
//! | ports and identity | all three | [`export_driver_with_ports_and_identity!`] |
//!
//! Build it with `cargo build --release --target wasm32-wasip2`. On other targets the export macros
//! expand to nothing, so `cargo test` and `cargo clippy` run natively. A driver that takes its
//! engine as `&dyn` [`Engine`] can be tested there against a fake engine.
//!
//! A guest lives for one call: the host instantiates it, calls it, and discards it. All input comes
//! with the call; durable facts belong on the engine's objects as labels. The probe cache
//! ([`Health::hint`]) comes with each later call, until the host discards it.

#![deny(missing_docs)]

mod bindings;
mod digest;
mod driver;
mod engine;
mod error;
mod flavor;
mod log;
mod path;
mod settings;
mod types;

#[doc(hidden)]
pub mod export;

pub use digest::Digest;
pub use driver::{Driver, Identity, Moves, Ports, Survey};
pub use engine::{Answer, Call, Engine, HostEngine, Job};
pub use flavor::FlavorProvider;
pub use log::write_log;
pub use path::Path;
pub use settings::settings;
pub use types::*;

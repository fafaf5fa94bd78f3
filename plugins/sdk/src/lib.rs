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
//! wharf_guest::export!(MyFlavors: FlavorProvider);
//! ```
//!
//! A driver names [`Driver`], and the traits of the optional interfaces that it has: [`Ports`],
//! [`Identity`], [`Survey`], [`Moves`], [`ContentMoves`], [`Volumes`], [`Snapshots`]. A provider of flavors names [`FlavorProvider`].
//!
//! Build it with `cargo build --release --target wasm32-wasip2`. On other targets [`export!`]
//! expands to nothing, so `cargo test` and `cargo clippy` run natively. A driver that takes its
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
#[cfg(feature = "fake")]
pub mod fake;
mod flavor;
mod log;
mod refusal;
mod report;
mod settings;
mod types;

#[doc(hidden)]
pub mod export;

pub use digest::Digest;
pub use driver::{ContentMoves, Driver, Identity, Moves, Ports, Snapshots, Survey, Volumes};
pub use engine::{Engine, EngineAnswer, HostEngine, Job, Moving, NamedRequest};
pub use flavor::FlavorProvider;
pub use log::write_log;
pub use refusal::{During, Refusal};
pub use report::{GIB, version_numbers};
pub use settings::settings;
pub use types::*;

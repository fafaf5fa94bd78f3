//! The tools of this project's tests and programs. In reading order:
//!
//! - [`engine`]: a private dockerd or Podman beside other engines of the machine, and the node's rules.
//! - [`incus`]: a private Incus cluster, and its images.
//! - [`images`]: the images of the standard flavors, made in an engine.
//! - [`server`]: the process of a server. `object_store`: a server of objects.
//! - [`http`]: a client for an engine and for Wharf. [`ssh`]: OpenSSH's client.
//! - [`process`], [`child`], [`packages`], [`signals`]: other programs, their packages, and Ctrl-C.
//! - [`progress`]: output for the person at the terminal. [`workspace`]: the checkout.

pub mod child;
pub mod engine;
pub mod images;
pub mod incus;
#[cfg(feature = "object-store")]
pub mod object_store;
pub mod server;
pub mod signals;
pub mod ssh;
pub mod workspace;

pub use wharf_images::{http, packages, process, progress};

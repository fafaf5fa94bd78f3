//! Everything that is done to this workspace (`cargo xtask --help`), as a library so that the tests
//! use the same pieces. In reading order:
//!
//! - [`up`]: from nothing to a running Wharf with a first instance.
//! - [`engine`]: a private dockerd beside whatever else runs on the machine, and the node's rules.
//! - [`images`]: the images of the standard flavors.
//! - [`conformance`]: a suite that any implementation of the interface can be held against.
//! - [`bench`]: how fast it is, beside baselines; `bench/` is the program that measures.
//! - [`build`], [`schemas`], [`test`], [`ci`], [`tidy`]: the workspace itself.
//! - [`compiled`], [`http`], [`packages`], [`process`], [`say`], [`server`], [`signals`], [`ssh`],
//!   [`workspace`]: what those stand on.

pub mod bench;
pub mod build;
pub mod ci;
pub mod compiled;
pub mod conformance;
pub mod engine;
pub mod http;
pub mod images;
pub mod packages;
pub mod process;
pub mod say;
pub mod schemas;
pub mod server;
pub mod signals;
pub mod ssh;
pub mod test;
pub mod tidy;
pub mod up;
pub mod workspace;

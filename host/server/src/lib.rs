//! Wharf, an instance provisioning service. The modules in reading order:
//!
//! - [`domain`]: types and rules without I/O.
//! - [`placement`], [`ledger`]: the choice of a node and the cost of an instance, without I/O.
//! - [`db`]: durable rows with group commit.
//! - [`app`]: the use cases, each with one atomic write.
//! - [`plugin`], [`engine`]: sandboxed drivers and flavors, and the drivers' connection to an engine.
//! - [`simulated`]: a built-in engine for tests and demos.
//! - [`reconciler`]: the loop that brings nodes to the intended state.
//! - [`schema`], [`api`], [`http`]: the REST interface.
//! - [`server`], [`config`], [`log`]: start and shutdown, the settings, and the log.
//! - `private`: files that only Wharf's account can read.

pub mod api;
pub mod http;
pub mod log;
pub mod schema;
pub mod server;

//! Wharf: an instance provisioning service. The code map, in reading order:
//!
//! - [`domain`]: what it is about; no I/O.
//! - [`placement`], [`ledger`]: pure decisions: which node, how much money.
//! - [`db`]: durable rows, group commit.
//! - [`app`]: the use cases; each one atomic write.
//! - [`plugin`], [`engine`]: sandboxed drivers and flavors, and the one thing a driver reaches.
//! - [`reconciler`]: makes nodes follow the database.
//! - [`schema`], [`api`], [`http`]: the REST interface.
//! - [`server`]: all of it put together; [`config`]: every setting and limit; [`log`]: its log;
//!   `private`: files for nobody else.

pub mod api;
pub mod app;
pub mod config;
pub mod db;
pub mod domain;
pub mod engine;
pub mod http;
pub mod ledger;
pub mod log;
pub mod placement;
pub mod plugin;
mod private;
pub mod reconciler;
pub mod schema;
pub mod simulated;
pub mod server;

//! Wharf, an instance provisioning service: the REST interface and the command line. The modules in
//! reading order:
//!
//! - [`command`]: the subcommands of the program.
//! - [`server`]: start and shutdown.
//! - [`http`], [`api`], [`schema`]: connections, endpoints, and rules for bodies.
//! - `oidc`: the provider of sign-ins.
//! - `acme`: the certificate of the pages from an authority.
//! - [`operation`]: operations for the operator, which are subcommands.
//! - [`log`]: the log.

mod acme;
pub mod api;
mod certificate_dates;
mod check;
pub mod command;
pub mod drivers;
mod file_permissions;
pub mod http;
pub mod log;
mod node_rules;
mod node_tls;
mod oidc;
pub mod operation;
mod proofs;
mod registries;
mod reload;
pub mod schema;
pub mod server;
mod supervised_tasks;

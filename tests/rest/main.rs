//! The REST interface of a real server with the simulated engine. Each endpoint or concern has a
//! file; the name of a test states the rule.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod addresses;
mod audit;
mod auth;
mod away;
mod backup;
mod bill;
mod capacity;
mod catalogue;
mod check;
mod cli;
mod compiled;
mod conditional;
mod configuration;
mod create;
mod data_dir;
mod database;
mod delete;
mod device;
mod disk;
mod drain;
mod events;
mod formats;
mod fsck;
mod history;
mod hygiene;
mod idempotency;
mod keys;
mod lost;
mod moves;
mod oidc;
mod outage;
mod own_flavors;
mod passkeys;
mod plugins;
mod policies;
mod ports;
mod quota;
mod rate;
mod read;
mod recovery;
mod reload;
mod restart;
mod retention;
mod retired;
mod rush;
mod secrets;
mod short_node;
mod sign_in;
mod simulated;
mod ssh_keys;
mod stats;
mod stop;
mod suspend;
mod terminal;
mod tls;
mod tracing;
mod transport;
mod trust;
mod unreachable;
mod update;
mod usage;
mod webhooks;

use wharf_tests::{Api, Ports, Server, lasting_node, simulated_node};

/// Starts a server with one simulated node, and creates a user.
fn start() -> (Server, Api) {
    start_with("")
}

/// Starts a server whose simulated node has these settings.
fn start_with(settings: &str) -> (Server, Api) {
    let node = simulated_node("one", settings);
    let server = Server::start(&format!("{}{node}", Ports::take().settings())).unwrap();
    let api = server.user("ann@example.com").unwrap();
    (server, api)
}

/// Does what [`start_with`] does, on an engine whose instances outlive the server.
fn start_lasting(settings: &str) -> (Server, Api, tempfile::TempDir) {
    let (node, dir) = lasting_node("one", settings).unwrap();
    let server = Server::start(&format!("{}{node}", Ports::take().settings())).unwrap();
    let api = server.user("ann@example.com").unwrap();
    (server, api, dir)
}

fn uuid(instance: &serde_json::Value) -> &str {
    instance["uuid"].as_str().unwrap()
}

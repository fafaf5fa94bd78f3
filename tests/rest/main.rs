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
mod backup;
mod bill;
mod capacity;
mod conditional;
mod configuration;
mod create;
mod data_dir;
mod database;
mod delete;
mod disk;
mod formats;
mod fsck;
mod history;
mod hygiene;
mod idempotency;
mod keys;
mod outage;
mod plugins;
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
mod simulated;
mod stats;
mod stop;
mod tls;
mod tracing;
mod transport;
mod trust;
mod unreachable;
mod update;

use wharf_tests::{Api, Ports, Server, simulated_node};

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

fn uuid(instance: &serde_json::Value) -> &str {
    instance["uuid"].as_str().unwrap()
}

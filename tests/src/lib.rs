//! Test support: a server with its own data directory, a client, SSH.

#![allow(
    clippy::indexing_slicing,
    reason = "serde_json values: a missing key is null"
)]

mod api;
pub mod browser;
mod certificates;
mod cli;
mod config;
mod document;
mod fake_clock;
pub mod kills;
pub mod lanes;
mod marionette;
mod network;
mod node_check;
mod openssh;
mod page_server;
mod pebble;
pub mod proof;
mod proxy;
mod python;
mod registry;
mod server;
mod share;
mod ssh;
mod terminal;
mod trials;
mod tunnel;
mod wait;

pub use api::{Answer, Api, small};
pub use certificates::{Authority, Certificate};
pub use cli::{Ended, OnTerminal, Shell, end};
pub use config::{Ports, WITHOUT_RATES, docker_node, lasting_node, roomy, simulated_node};
pub use document::{check as agrees_with_document, check_body as body_agrees, documented};
pub use fake_clock::FakeClock;
pub use network::{free_network, free_network_beside};
pub use node_check::node_check;
pub use openssh::OpenSsh;
pub use page_server::PageServer;
pub use pebble::{HookMode, Pebble};
pub use proxy::Proxy;
pub use python::{Python, succeed};
pub use registry::{Registry, RegistryMode};
pub use server::{Server, write_private};
pub use ssh::{KeyPair, Login, install as install_ssh};
pub use terminal::{Heard, Refused, Terminal};
pub use trials::{Test, is_wanted, stop, trial, without_engine};
pub use tunnel::Tunnel;
pub use wait::{called, caught, eventually, interval, metric, observed, settled, until};
pub use wharf_testkit::workspace::wharf_binary;

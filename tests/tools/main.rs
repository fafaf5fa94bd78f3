//! The interface through third-party tools that know only its OpenAPI document: a fuzzer and a
//! client generator. Also tests of the project's programs that are not in Rust.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod ai_key;
mod client;
mod dist;
mod metrics;
mod schemathesis;
mod wharf_vm;

use std::path::PathBuf;
use wharf_testkit::workspace::root;
use wharf_tests::{Python, Server, WITHOUT_RATES};

/// Returns the path of a file in this directory.
fn source(name: &str) -> PathBuf {
    root().join("tests/tools").join(name)
}

/// Returns the environment with the tools.
fn python() -> Python {
    Python::ensure(&source("requirements.txt")).unwrap()
}

/// Starts a server with ample room, and with a node that the first instance fills.
fn start() -> Server {
    let node = |name: &str, more: &str| {
        format!(
            "[[node]]\nname = \"{name}\"\ndriver = \"simulated\"\nendpoint = \"simulated:\"\n{more}"
        )
    };
    let roomy = node(
        "roomy",
        "capacity = { n_vcpus = 20000, mem_gib = 40000, disk_size_gib = 200000 }\n\
         public_ipv4 = [\"198.18.0.0/21\"]\ncpu_tiers = [\"general-purpose\"]\n\
         gpus = [{ model = \"H100\", devices = [\"gpu0\", \"gpu1\"] }]\n\
         settings = { gpus = [{ model = \"H100\", device = \"gpu0\" }, { model = \"H100\", device = \"gpu1\" }] }\n",
    );
    let small = node(
        "small",
        "capacity = { n_vcpus = 16, mem_gib = 32, disk_size_gib = 500 }\n\
         lan_cidr = \"10.81.0.0/16\"\ncpu_tiers = [\"high-performance\"]\n",
    );
    // Simulated instances open no ports, so these numbers conflict with nothing.
    let ports = "[ssh_ports]\nfrom = 20000\nto = 25999\n[web]\nfrom = 26000\nto = 31999\n";
    Server::start(&format!("{WITHOUT_RATES}{ports}{roomy}{small}")).unwrap()
}

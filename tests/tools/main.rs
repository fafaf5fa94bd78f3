//! The interface through other people's tools, which know nothing but its OpenAPI document: one that
//! looks for faults, and one that writes a client. And programs of ours that are not in Rust.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod client;
mod schemathesis;
mod wharf_vm;

use std::path::PathBuf;
use wharf_testkit::workspace::root;
use wharf_tests::{Python, Server};

/// A file beside this one.
fn source(name: &str) -> PathBuf {
    root().join("tests/tools").join(name)
}

/// The tools.
fn python() -> Python {
    Python::ensure(&source("requirements.txt")).unwrap()
}

/// Room for whatever a tool thinks of, and a node that is full with the first instance.
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
    // Simulated instances listen nowhere: the ports are only numbers here, and nobody else's.
    let ports = "[ssh_ports]\nfrom = 20000\nto = 25999\n[web]\nfrom = 26000\nto = 31999\n";
    Server::start(&format!("{ports}{roomy}{small}")).unwrap()
}

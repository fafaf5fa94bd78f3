//! The examples for plugin authors, built by the commands of `plugins/README.md`, in a real server.
//! Also the errors for invalid plugins.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod approval;
mod built;
mod celld;
mod cells;
mod clash;
mod examples;
mod proof;
mod sanity;

use std::path::Path;
use wharf_tests::{Ports, Server, simulated_node};

/// Starts a server with the plugins of a directory.
fn start(plugins: &Path) -> anyhow::Result<Server> {
    Server::start(&format!(
        "plugins_dir = \"{}\"\n{}{}",
        plugins.display(),
        Ports::take().settings(),
        simulated_node("one", "")
    ))
}

//! The examples for authors of plugins, built as `plugins/README.md` says, in a real server; and
//! what becomes of a plugin that does not fit beside the others.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod built;
mod clash;
mod examples;

use std::path::Path;
use wharf_tests::{Ports, Server, simulated_node};

/// A server with the plugins of a directory.
fn start(plugins: &Path) -> anyhow::Result<Server> {
    Server::start(&format!(
        "plugins_dir = \"{}\"\n{}{}",
        plugins.display(),
        Ports::take().settings(),
        simulated_node("one", "")
    ))
}

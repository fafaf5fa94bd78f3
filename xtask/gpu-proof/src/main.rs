//! `cargo xtask gpu-proof`: Wharf with a node on a real GPU, and a report of what its instances see.
//!
//! - [`proof`]: the steps, in their order. [`inside`]: the look from inside an instance.
//! - [`machine`], [`driver`], [`cdi`]: what the machine permits, its GPUs, and their description for an engine.
//! - [`node`]: a private Podman and a server. [`report`]: the results.
//! - [`bundle`]: all of it in a directory, for a machine without a network.

mod bundle;
mod cdi;
mod driver;
mod inside;
mod machine;
mod node;
mod proof;
mod report;

use anyhow::Result;
use clap::Parser;
use std::path::PathBuf;

/// Wharf with a node on a real GPU, and a report.
#[derive(Parser)]
#[command(name = "wharf-gpu-proof", bin_name = "cargo xtask gpu-proof")]
struct Options {
    /// Rehearse with a harmless device, on a machine without a GPU.
    #[arg(long)]
    fake: bool,
    /// The file of the report [default: target/gpu-proof.md].
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Make a new directory with all that the proof needs on a machine without a network; its run.sh runs it.
    #[arg(long, value_name = "DIRECTORY", conflicts_with_all = ["fake", "report"])]
    bundle: Option<PathBuf>,
}

fn main() -> Result<()> {
    let options = Options::parse();
    match &options.bundle {
        Some(directory) => bundle::make(directory),
        None => proof::run(options.fake, options.report),
    }
}

//! `cargo xtask bench`: measures Wharf.
//!
//! Each row of the table has a baseline that is measured in the same run, their ratio, and its target:
//! figures of a loaded machine mean little by themselves. First comes what users feel, beside other
//! engines; figures of parts follow.
//!
//! - `measure/`: the measurements, one file each. [`table`]: rows, the table, JSON.
//! - [`load`]: the load generator. [`baseline`]: a server that only answers. [`gateway`]: the gateway before a page. [`pairs`]: pairs of runs.
//! - [`data`]: databases of any size. [`server`]: Wharf. [`process`]: CPU time and memory.

#![expect(
    clippy::indexing_slicing,
    reason = "only JSON values are indexed: what is missing is null there, and no panic"
)]

mod baseline;
mod data;
mod gateway;
mod load;
mod measure;
mod pairs;
mod process;
mod server;
mod table;

use anyhow::Result;
use clap::{Args, Parser};
use std::path::PathBuf;
use table::Table;
use wharf_testkit::workspace;

/// Measures Wharf beside baselines and other engines.
#[derive(Parser)]
#[command(name = "wharf-bench", bin_name = "cargo xtask bench")]
enum Command {
    /// Measure.
    Run(Options),
    /// Answer every request with a line of a file, in turn.
    #[command(hide = true)]
    Baseline {
        /// The file.
        bodies: PathBuf,
    },
    /// Serve one page with the gateway.
    #[command(hide = true)]
    Gateway {
        /// The port of the page.
        port: u16,
        /// The directory of the certificate.
        directory: PathBuf,
    },
}

/// Measures Wharf beside baselines and other engines.
///
/// Engines are measured as root, where they are installed: a private dockerd and Podman, and the
/// machine's Incus.
#[derive(Debug, Clone, Args)]
#[command(override_usage = "cargo xtask bench [OPTIONS]")]
pub struct Options {
    /// Small sizes and no engines, about a minute: a test of the program, not of the speed.
    #[arg(long)]
    quick: bool,
    /// Only measurements whose name contains this: engine, page, snapshot, backup, tunnel,
    /// vm, peers, read, create, start, idle, gateway, bystander, scale.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// The directory of the table, bench.json [default: target/bench].
    #[arg(long, value_name = "DIRECTORY")]
    report: Option<PathBuf>,
}

fn main() -> Result<()> {
    match Command::parse() {
        Command::Baseline { bodies } => baseline::serve(&bodies),
        Command::Gateway { port, directory } => gateway::serve(port, &directory),
        Command::Run(options) => {
            let mut table = Table::default();
            measure::run(&options, &mut table)?;
            let report = options.report;
            table.write(&report.unwrap_or_else(|| workspace::target().join("bench")))?;
            print!("{table}");
            Ok(())
        }
    }
}

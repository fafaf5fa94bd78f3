//! Measures Wharf. Each row of the table has a baseline that is measured in the same run, a ratio,
//! and what the ratio should reach; figures of a loaded machine say little by themselves.
//!
//! - `measure/`: one file for each measurement. [`table`]: rows, the table, JSON. [`curve`]: SVG.
//! - [`load`]: the load generator. [`bare`]: what answers without doing anything. [`data`]: databases
//!   of any size. [`server`]: Wharf itself. [`process`]: what a process used.

#![expect(
    clippy::indexing_slicing,
    reason = "only JSON values are indexed: what is missing is null there, and no panic"
)]

mod bare;
mod curve;
mod data;
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

/// Measures Wharf beside its baselines.
#[derive(Parser)]
#[command(name = "wharf-bench", bin_name = "cargo xtask bench")]
enum Command {
    /// Measure.
    Run(Options),
    /// Answer every request with a line of a file, in turn: a baseline.
    #[command(hide = true)]
    Bare {
        /// The file.
        bodies: PathBuf,
    },
}

/// What to measure, and how.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Small sizes, about a minute: to see that it works, not how fast it is.
    #[arg(long)]
    quick: bool,
    /// Only measurements whose name contains this.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Beside a private dockerd too: creates on it, as root.
    #[arg(long)]
    engine: bool,
    /// The same questions to the Docker, Podman and Incus of this machine too.
    #[arg(long)]
    peers: bool,
    /// Where the table (bench.json) and the curves (*.svg) go.
    #[arg(long, value_name = "DIRECTORY", default_value = "target/bench")]
    report: PathBuf,
}

fn main() -> Result<()> {
    match Command::parse() {
        Command::Bare { bodies } => bare::serve(&bodies),
        Command::Run(options) => {
            let mut table = Table::default();
            measure::run(&options, &mut table)?;
            table.write(&options.report)?;
            print!("{table}");
            Ok(())
        }
    }
}

//! `cargo xtask conformance`, and a program of its own for other services.

use anyhow::Result;
use clap::Parser;

/// Checks a service against every rule of the interface, one line for each.
#[derive(Parser)]
#[command(name = "wharf-conformance")]
struct Command {
    #[command(flatten)]
    options: wharf_conformance::Options,
}

fn main() -> Result<()> {
    wharf_conformance::run(&Command::parse().options)
}

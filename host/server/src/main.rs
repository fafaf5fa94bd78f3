//! The program `wharf`.

use clap::Parser;
use std::process::ExitCode;
use wharf::command::Cli;

fn main() -> ExitCode {
    match Cli::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        // Print the error and its causes on one line, since a backtrace does not help an operator.
        Err(error) => {
            eprintln!("wharf: {error:#}");
            ExitCode::FAILURE
        }
    }
}

//! The program `wharf`.

use std::process::ExitCode;
use wharf::command::Cli;

fn main() -> ExitCode {
    Cli::main()
}

//! `cargo xtask bench`: builds the server and what measures it, in release, and measures.

use crate::build::{cargo, ensure_wasm_target};
use crate::process::run;
use crate::{say, workspace};
use anyhow::Result;
use std::process::Command;

/// With the whole workspace selected, as [`crate::build::wharf`] does.
const BUILD: [&str; 8] = [
    "build",
    "--release",
    "--locked",
    "--workspace",
    "--bin",
    "wharf",
    "--bin",
    "wharf-bench",
];

/// Hands the arguments on to `wharf-bench run`.
pub fn run_with(arguments: &[String]) -> Result<()> {
    ensure_wasm_target()?;
    say::timed("Building wharf and its benchmarks (release)", || {
        run(cargo().args(BUILD))
    })?;
    let mut bench = Command::new(workspace::target().join("release/wharf-bench"));
    run(bench
        .current_dir(workspace::root())
        .arg("run")
        .args(arguments))
}

//! `cargo xtask ci`: everything that `.ci/run` does.

use crate::process::{command, run};
use crate::workspace;
use anyhow::Result;

/// Runs the same script as the continuous integration does.
pub fn run_all() -> Result<()> {
    run(command("bash")
        .current_dir(workspace::root())
        .arg(".ci/run"))
}

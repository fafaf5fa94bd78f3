//! `cargo xtask test`: builds what is needed and runs every test of the workspace.

use crate::build::{cargo, ensure_wasm_target};
use crate::process::run;
use crate::say;
use anyhow::Result;

/// Runs the tests whose names contain `filter`, or all.
pub fn run_all(filter: Option<&str>) -> Result<()> {
    ensure_wasm_target()?;
    crate::build::wharf()?;
    say::timed("Testing the workspace (release)", || {
        let mut test = cargo();
        // One failure must not hide another.
        test.args([
            "test",
            "--release",
            "--locked",
            "--workspace",
            "--no-fail-fast",
        ]);
        if let Some(filter) = filter {
            test.arg(filter);
        }
        run(&mut test)
    })
}

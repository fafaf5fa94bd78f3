//! `cargo xtask test`: builds what is needed and runs every test of the workspace.

use crate::build::{cargo, ensure_wasm_target};
use crate::process::run;
use crate::say;
use anyhow::Result;

/// Read by the tests of the flavors.
const FLAVORS: &str = "WHARF_TEST_FLAVORS";

/// Runs the tests whose names contain `filter`, or all; on the images of `all_flavors`, or of those
/// that are quick to make.
pub fn run_all(filter: Option<&str>, all_flavors: bool) -> Result<()> {
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
        if all_flavors {
            test.env(FLAVORS, "all");
        }
        if let Some(filter) = filter {
            test.arg(filter);
        }
        run(&mut test)
    })
}

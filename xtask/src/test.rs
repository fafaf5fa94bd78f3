//! `cargo xtask test`: builds what is needed and runs every test of the workspace.

mod digest;

use crate::build::{cargo, ensure_wasm_target};
use crate::process::wait_until;
use crate::say;
use anyhow::{Context, Result, ensure};
use digest::Digest;
use std::io::{BufRead, BufReader, PipeReader, Write};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Read by the tests of the flavors.
const FLAVORS: &str = "WHARF_TEST_FLAVORS";

/// How many tests run at once in a binary with Rust's own harness; the engines' and the flavors' say for
/// themselves.
const THREADS: &str = "RUST_TEST_THREADS";
/// For each core: most of a test is waiting for a server.
const THREADS_PER_CORE: usize = 2;

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
        if std::env::var_os(THREADS).is_none() {
            let cores = std::thread::available_parallelism()?.get();
            test.env(THREADS, (THREADS_PER_CORE * cores).to_string());
        }
        if all_flavors {
            test.env(FLAVORS, "all");
        }
        if let Some(filter) = filter {
            test.arg(filter);
        }
        run(test)
    })
}

/// Passes on what the tests print, and says at the end again what is worth it.
fn run(mut test: Command) -> Result<()> {
    let (output, write) = std::io::pipe()?;
    // One pipe for both, which keeps their lines in order.
    test.stdout(write.try_clone()?).stderr(write);
    let mut child = test.spawn().context("cargo does not run")?;
    // It holds the writing ends: the output would never end.
    drop(test);
    let digest = Arc::new(Mutex::new(Digest::default()));
    let copied = std::thread::spawn({
        let digest = Arc::clone(&digest);
        move || copy(output, &digest)
    });
    let status = child.wait()?;
    // A process that a test has left behind may hold the pipe open.
    wait_until(Duration::from_secs(5), || copied.is_finished());
    let digest = digest.lock().unwrap_or_else(PoisonError::into_inner);
    eprint!("\n{}", digest.summary());
    ensure!(
        status.success(),
        "tests failed: above is which, and what they said"
    );
    Ok(())
}

fn copy(output: PipeReader, digest: &Mutex<Digest>) -> std::io::Result<()> {
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    while output.read_until(b'\n', &mut line)? > 0 {
        std::io::stdout().write_all(&line)?;
        digest
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .line(String::from_utf8_lossy(&line).trim_end_matches('\n'));
        line.clear();
    }
    Ok(())
}

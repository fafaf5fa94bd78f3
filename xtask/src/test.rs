//! `cargo xtask test`: builds what the tests need and runs every test of the workspace.

mod digest;

use crate::build;
use crate::process::{run as run_program, step};
use crate::workspace::Workspace;
use anyhow::{Context, Result, ensure};
use digest::Digest;
use std::env;
use std::io::{BufRead, BufReader, PipeReader, Write};
use std::process::Command;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The variable that selects the flavors whose images are tested.
const FLAVORS: &str = "WHARF_TEST_FLAVORS";
/// The variable that limits how many tests of one binary run at a time.
const THREADS: &str = "RUST_TEST_THREADS";
/// Most of a test is waiting for a server.
const THREADS_PER_CORE: usize = 2;
/// How long to wait for the end of the output after cargo has ended.
const OUTPUT_LIMIT: Duration = Duration::from_secs(5);

/// Builds what all tests need, and the tests.
pub fn build(workspace: &Workspace) -> Result<()> {
    build::programs_of_tests(workspace)?;
    step("Building the tests (release)", || {
        run_program(cargo_test(workspace).arg("--no-run"))
    })
}

fn cargo_test(workspace: &Workspace) -> Command {
    let mut test = workspace.cargo();
    test.args(["test", "--release", "--locked", "--workspace"]);
    test
}

/// Runs the tests whose names contain `filter`, or all. With `all_flavors`, on the images of all
/// flavors; else on those that are quick to make.
pub fn run(workspace: &Workspace, filter: Option<&str>, all_flavors: bool) -> Result<()> {
    build::programs_of_tests(workspace)?;
    let mut test = cargo_test(workspace);
    // One failure must not hide another.
    test.arg("--no-fail-fast");
    if env::var_os(THREADS).is_none() {
        let cores = std::thread::available_parallelism()?.get();
        test.env(THREADS, (THREADS_PER_CORE * cores).to_string());
    }
    if all_flavors {
        test.env(FLAVORS, "all");
    }
    test.args(filter);
    step("Testing the workspace (release)", || run_and_digest(test))
}

/// Passes the output on, and repeats what matters at the end.
fn run_and_digest(mut test: Command) -> Result<()> {
    let (output, write) = std::io::pipe()?;
    // One pipe for stdout and stderr keeps their lines in order.
    test.stdout(write.try_clone()?).stderr(write);
    let mut child = test.spawn().context("cannot run cargo")?;
    // The command holds writing ends of the pipe, which would never end.
    drop(test);
    let digest = Arc::new(Mutex::new(Digest::default()));
    let (ended, end) = channel();
    let copied = Arc::clone(&digest);
    std::thread::spawn(move || ended.send(copy(output, &copied)));
    let status = child.wait()?;
    // A process that a test left behind may hold the pipe open.
    if end.recv_timeout(OUTPUT_LIMIT).is_err() {
        eprintln!("A test left a process behind.");
    }
    let digest = digest.lock().unwrap_or_else(PoisonError::into_inner);
    eprint!("\n{}", digest.summary());
    ensure!(status.success(), "tests failed; see above");
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

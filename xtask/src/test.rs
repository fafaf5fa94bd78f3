//! `cargo xtask test`: builds what the tests need and runs every test of the workspace, in lanes beside each
//! other.

mod digest;

use crate::build;
use crate::process::{run as run_program, step};
use crate::workspace::Workspace;
use anyhow::{Context, Result, ensure};
use digest::Digest;
use serde_json::Value;
use std::env;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The variable that selects the flavors whose images are tested.
const FLAVORS: &str = "WHARF_TEST_FLAVORS";
/// The variable that limits how many tests of one binary run at a time.
const THREADS: &str = "RUST_TEST_THREADS";
/// The tests of real engines, those of `up` with the name `engine`. They mostly wait, for storage and for
/// virtual machines, and look for traces on the whole machine. All other tests run meanwhile.
const ENGINES: [&str; 5] = ["engines", "flavors", "incus", "ovn", "engine"];
/// Most of a test is waiting for a server.
const THREADS_PER_CORE: usize = 2;
/// How long to wait for a line after cargo has ended.
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
    build(workspace)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let usual = (THREADS_PER_CORE * cores).to_string();
    let threads = env::var(THREADS).unwrap_or(usual);
    let command = |targets: &[String]| {
        let mut test = cargo_test(workspace);
        // One failure must not hide another.
        test.arg("--no-fail-fast").args(targets).args(filter);
        test.envs(all_flavors.then_some((FLAVORS, "all")));
        test.env(THREADS, &threads);
        test
    };
    let (engines, others) = targets(workspace)?;
    step("Testing the workspace (release)", || {
        let lanes = [others, engines, vec!["--doc".to_owned()]];
        // The lines of later lanes wait, so that those of two lanes do not mix.
        let lanes = lanes.map(|targets| start(command(&targets)));
        let (mut summaries, mut failed) = (String::new(), false);
        for lane in lanes {
            let (summary, passed) = finish(lane?)?;
            summaries += &summary;
            failed |= !passed;
        }
        eprint!("\n{summaries}");
        ensure!(!failed, "tests failed; see above");
        Ok(())
    })
}

/// The arguments that select the targets of the lane of [`ENGINES`], and of the other lane.
#[allow(clippy::indexing_slicing, reason = "JSON: a missing key is null")]
fn targets(workspace: &Workspace) -> Result<(Vec<String>, Vec<String>)> {
    let mut metadata = workspace.cargo();
    metadata.args(["metadata", "--no-deps", "--locked", "--format-version=1"]);
    let metadata: Value = serde_json::from_slice(&metadata.output()?.stdout)?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let targets = packages.flat_map(|package| package["targets"].as_array().into_iter().flatten());
    let tests = targets.filter(|target| target["kind"][0] == "test");
    let mut lanes = (Vec::new(), ["--lib", "--bins"].map(str::to_owned).to_vec());
    for name in tests.filter_map(|target| target["name"].as_str()) {
        let is_engine = ENGINES.contains(&name);
        let lane = if is_engine {
            &mut lanes.0
        } else {
            &mut lanes.1
        };
        lane.push(format!("--test={name}"));
    }
    Ok(lanes)
}

/// A running command, and its lines with their times.
type Lane = (Child, Receiver<(Instant, Vec<u8>)>);

fn start(mut test: Command) -> Result<Lane> {
    let (output, write) = std::io::pipe()?;
    // One pipe for stdout and stderr keeps their lines in order.
    test.stdout(write.try_clone()?).stderr(write);
    let child = test.spawn().context("cannot run cargo")?;
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        let mut output = BufReader::new(output);
        let mut line = Vec::new();
        while output
            .read_until(b'\n', &mut line)
            .is_ok_and(|length| length > 0)
        {
            let _ = sender.send((Instant::now(), std::mem::take(&mut line)));
        }
    });
    Ok((child, lines))
}

/// Prints the lines to the end. Returns what matters of them, and whether the command succeeded.
fn finish((mut child, lines): Lane) -> Result<(String, bool)> {
    let mut digest = Digest::default();
    loop {
        match lines.recv_timeout(OUTPUT_LIMIT) {
            Ok((at, line)) => {
                std::io::stdout().write_all(&line)?;
                digest.line(at, String::from_utf8_lossy(&line).trim_end_matches('\n'));
            }
            Err(RecvTimeoutError::Timeout) if child.try_wait()?.is_some() => {
                eprintln!("A test left a process behind, which holds the output open.");
                break;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    Ok((digest.summary(), child.wait()?.success()))
}

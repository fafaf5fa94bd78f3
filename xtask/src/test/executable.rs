//! The test executables of the workspace: what cargo built, and how each runs.

use super::Selection;
use super::outcome::Outcome;
use crate::process::run;
use crate::workspace::{Workspace, without_package};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::env;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// The variable that includes the tests that a plain run leaves out.
const ALL: &str = "WHARF_TEST_ALL";
/// The variable that limits how many tests of one executable run at a time.
const THREADS: &str = "RUST_TEST_THREADS";
/// The executable whose tests mostly wait, so that one more runs at a time.
const WAITING: &str = "rest";

/// A test executable.
#[derive(Debug)]
pub struct Executable {
    /// The name of its target, such as `rest` or `wharf_domain`.
    pub name: String,
    program: PathBuf,
    /// The directory of its package, in which cargo would run it.
    package: PathBuf,
}

/// Builds all targets of the workspace in one graph; returns the tests among them.
pub fn build(workspace: &Workspace) -> Result<Vec<Executable>> {
    let mut cargo = workspace.cargo();
    cargo.args(["build", "--release", "--locked", "--workspace"]);
    // --all-targets would build libraries without tests as benchmarks.
    cargo.args(["--lib", "--bins", "--tests", "--examples"]);
    cargo.arg("--message-format=json-render-diagnostics");
    let mut child = cargo
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run cargo")?;
    let mut executables = Vec::new();
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).lines() {
            executables.extend(executable(&serde_json::from_str(&line?)?));
        }
    }
    let status = child.wait()?;
    ensure!(status.success(), "cargo build: {status}");
    executables.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(executables)
}

/// Reads one message of cargo.
#[allow(clippy::indexing_slicing, reason = "JSON: a missing key is null")]
fn executable(message: &Value) -> Option<Executable> {
    if message["profile"]["test"] != true {
        return None;
    }
    Some(Executable {
        program: message["executable"].as_str()?.into(),
        name: message["target"]["name"].as_str()?.to_owned(),
        package: Path::new(message["manifest_path"].as_str()?)
            .parent()?
            .to_owned(),
    })
}

/// Runs the examples in the documentation.
pub fn documentation(workspace: &Workspace) -> Result<()> {
    run(workspace
        .cargo()
        .args(["test", "--release", "--locked", "--workspace", "--doc"]))
}

impl Executable {
    /// Runs its selected tests.
    pub fn run(&self, workspace: &Workspace, selection: &Selection) -> Result<Outcome> {
        let arguments: Vec<_> = selection.filter.as_deref().into_iter().collect();
        self.start(workspace, selection, &arguments)
    }

    /// Runs one of its tests.
    pub fn run_one(
        &self,
        workspace: &Workspace,
        selection: &Selection,
        test: &str,
    ) -> Result<Outcome> {
        self.start(workspace, selection, &["--exact", test])
    }

    /// A file takes the output, since a process that a test left behind would hold a pipe open.
    fn start(
        &self,
        workspace: &Workspace,
        selection: &Selection,
        arguments: &[&str],
    ) -> Result<Outcome> {
        let directory = workspace.target().join("test-output");
        fs::create_dir_all(&directory)?;
        let path = directory.join(format!("{}.log", self.name));
        let output = File::create(&path).with_context(|| format!("{}", path.display()))?;
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir(&self.package);
        command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output);
        // Cargo describes the package to its tests.
        without_package(&mut command).env("CARGO_MANIFEST_DIR", &self.package);
        command.env("CARGO_PKG_NAME", &self.name);
        command.envs(selection.all.then_some((ALL, "1")));
        if env::var_os(THREADS).is_none() {
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            let threads = cores + usize::from(self.name == WAITING);
            command.env(THREADS, threads.to_string());
        }
        let since = Instant::now();
        let status = command.status();
        let status = status.with_context(|| format!("cannot run {}", self.program.display()))?;
        let output = fs::read(&path)?;
        Ok(Outcome {
            name: self.name.clone(),
            took: since.elapsed(),
            code: status.code(),
            output: String::from_utf8_lossy(&output).into_owned(),
        })
    }
}

#[cfg(test)]
pub mod tests {
    use super::{Executable, executable};
    use serde_json::json;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    /// A test executable that is a shell script.
    pub fn script(directory: &Path, name: &str, text: &str) -> Executable {
        let program = directory.join(name);
        fs::write(&program, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Executable {
            name: name.to_owned(),
            program,
            package: directory.to_owned(),
        }
    }

    #[test]
    fn only_tests_are_run() {
        let mut message = json!({
            "manifest_path": "/a/tests/Cargo.toml",
            "target": { "name": "rest" },
            "profile": { "test": true },
            "executable": "/a/target/release/deps/rest-01ab",
        });
        let found = executable(&message).unwrap();
        assert_eq!(
            (found.name.as_str(), found.package.to_str()),
            ("rest", Some("/a/tests"))
        );
        message["profile"]["test"] = json!(false);
        assert!(executable(&message).is_none());
    }
}

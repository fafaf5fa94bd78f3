//! The examples as components, each built once with the commands of `plugins/README.md`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use wharf_testkit::workspace::{root, target};
use wharf_tests::{Python, succeed};

/// Returns the flavor provider in Rust.
pub fn rust() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let mut cargo = wharf_testkit::workspace::cargo();
        cargo
            .args(["build", "--locked", "--package", "example-rust", "--lib"])
            .args(["--target", "wasm32-wasip2", "--profile", "plugin"])
            .arg("--target-dir")
            .arg(target().join("plugins"));
        succeed(&mut cargo).unwrap();
        target().join("plugins/wasm32-wasip2/plugin/example_rust.wasm")
    })
}

/// Returns the flavor provider in Python.
pub fn python() -> &'static Path {
    static BUILT: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let wit = ["-d", "../../wit/v0.1", "-w", "flavor-provider"];
    &BUILT.get_or_init(|| componentize("example-python", &wit)).1
}

/// Returns the driver in Python.
pub fn driver() -> &'static Path {
    static BUILT: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let wit = ["-d", "../../wit/v0.1", "-d", "world.wit"];
    let wit = [&wit[..], &["-w", "example:cells/driver"]].concat();
    &BUILT
        .get_or_init(|| componentize("example-driver-python", &wit))
        .1
}

/// Builds a plugin in Python.
fn componentize(package: &str, wit: &[&str]) -> (tempfile::TempDir, PathBuf) {
    let source = root().join("plugins").join(package);
    let python = Python::ensure(&source.join("requirements.txt")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let component = dir.path().join("example.wasm");
    let mut build: Command = python.program("componentize-py");
    build
        .current_dir(source)
        .args(wit)
        .args(["componentize", "--stub-wasi", "app", "-o"])
        .arg(&component);
    succeed(&mut build).unwrap();
    (dir, component)
}

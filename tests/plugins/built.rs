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
    let (_, component) = BUILT.get_or_init(|| {
        let source = root().join("plugins/example-python");
        let python = Python::ensure(&source.join("requirements.txt")).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let component = dir.path().join("example.wasm");
        let mut build: Command = python.program("componentize-py");
        build
            .current_dir(source)
            .args(["-d", "../../wit/v0.1", "-w", "flavor-provider"])
            .args(["componentize", "--stub-wasi", "app", "-o"])
            .arg(&component);
        succeed(&mut build).unwrap();
        (dir, component)
    });
    component
}

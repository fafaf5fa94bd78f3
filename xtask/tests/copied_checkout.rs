//! A checkout is copied or moved with its `target`: the binary works on the copy.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// A checkout in which `xtask tidy` finds one file.
fn checkout() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for inside in ["xtask", "host/src"] {
        fs::create_dir_all(dir.path().join(inside)).unwrap();
    }
    fs::write(dir.path().join("xtask/Cargo.toml"), "").unwrap();
    fs::write(dir.path().join("host/long.rs"), "\n".repeat(501)).unwrap();
    let mut git = Command::new("git");
    git.arg("-C").arg(dir.path()).args(["init", "--quiet"]);
    assert!(git.status().unwrap().success());
    dir
}

/// Whether `xtask tidy` in a directory, as cargo runs it from a package or without cargo, finds the file.
fn finds(current_dir: &Path, package: Option<&Path>) -> bool {
    let mut xtask = Command::new(env!("CARGO_BIN_EXE_xtask"));
    xtask.current_dir(current_dir).arg("tidy");
    match package {
        Some(package) => xtask.env("CARGO_MANIFEST_DIR", package),
        None => xtask.env_remove("CARGO_MANIFEST_DIR"),
    };
    let output = xtask.output().unwrap();
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stdout).contains("host/long.rs")
}

#[test]
fn the_checkout_of_the_package_that_cargo_runs_is_worked_on() {
    let (checkout, elsewhere) = (checkout(), tempfile::tempdir().unwrap());
    let package = checkout.path().join("xtask");
    assert!(finds(elsewhere.path(), Some(&package)));
}

#[test]
fn without_cargo_the_checkout_around_the_current_directory_is_worked_on() {
    let checkout = checkout();
    assert!(finds(&checkout.path().join("host/src"), None));
}

#[test]
fn outside_of_a_checkout_nothing_is_done() {
    let elsewhere = tempfile::tempdir().unwrap();
    assert!(!finds(elsewhere.path(), None));
}

//! A checkout is copied or moved with its `target`: the binary works on the copy.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

const DOCUMENT: &str = "openapi: 3.1.0\n\
    components:\n  schemas:\n    Ping: { type: object }\n\
    paths:\n  /ping:\n    content:\n      application/json:\n        schema: { $ref: '#/components/schemas/Ping' }\n";

/// A checkout with as much in it as `xtask schemas` needs.
fn checkout() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for inside in ["xtask", "host/src", "schemas/generated"] {
        fs::create_dir_all(dir.path().join(inside)).unwrap();
    }
    fs::write(dir.path().join("xtask/Cargo.toml"), "").unwrap();
    fs::write(dir.path().join("schemas/openapi.yaml"), DOCUMENT).unwrap();
    dir
}

/// `xtask schemas` in a directory, as cargo runs it from a package or without cargo.
fn schemas(current_dir: &Path, package: Option<&Path>) -> bool {
    let mut xtask = Command::new(env!("CARGO_BIN_EXE_xtask"));
    xtask.current_dir(current_dir).arg("schemas");
    match package {
        Some(package) => xtask.env("CARGO_MANIFEST_DIR", package),
        None => xtask.env_remove("CARGO_MANIFEST_DIR"),
    };
    xtask.status().unwrap().success()
}

fn is_generated(checkout: &TempDir) -> bool {
    checkout.path().join("schemas/generated/openapi.json").exists()
}

#[test]
fn the_checkout_of_the_package_that_cargo_runs_is_worked_on() {
    let (checkout, elsewhere) = (checkout(), tempfile::tempdir().unwrap());
    assert!(schemas(
        elsewhere.path(),
        Some(&checkout.path().join("xtask"))
    ));
    assert!(is_generated(&checkout));
}

#[test]
fn without_cargo_the_checkout_around_the_current_directory_is_worked_on() {
    let checkout = checkout();
    assert!(schemas(&checkout.path().join("host/src"), None));
    assert!(is_generated(&checkout));
}

#[test]
fn outside_of_a_checkout_nothing_is_done() {
    let elsewhere = tempfile::tempdir().unwrap();
    assert!(!schemas(elsewhere.path(), None));
}

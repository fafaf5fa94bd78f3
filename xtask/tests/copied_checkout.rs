//! A checkout is copied or moved with its `target`: the binary works on the copy.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

const DOCUMENT: &str = "openapi: 3.1.0\n\
    components:\n  schemas:\n    Ping: { type: object }\n\
    paths:\n  /ping:\n    content:\n      application/json:\n        schema: { $ref: '#/components/schemas/Ping' }\n";

/// Where the generator of the client is after its build.
const GENERATOR: &str = "target/release/wharf-client-generator";

/// A checkout with as much in it as `xtask schemas` needs. Its generator notes that it ran.
fn checkout() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for inside in ["xtask", "host/src", "schemas/generated", "target/release"] {
        fs::create_dir_all(dir.path().join(inside)).unwrap();
    }
    fs::write(dir.path().join("xtask/Cargo.toml"), "").unwrap();
    fs::write(dir.path().join("schemas/openapi.yaml"), DOCUMENT).unwrap();
    let generator = dir.path().join(GENERATOR);
    fs::write(&generator, "#!/bin/sh\ntouch \"$0.ran\"\n").unwrap();
    fs::set_permissions(&generator, fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

/// `xtask schemas` in a directory, as cargo runs it from a package or without cargo.
fn schemas(current_dir: &Path, package: Option<&Path>) -> bool {
    let mut xtask = Command::new(env!("CARGO_BIN_EXE_xtask"));
    xtask.current_dir(current_dir).arg("schemas");
    // Nothing is to be built.
    xtask.env("CARGO", "true").env_remove("CARGO_TARGET_DIR");
    match package {
        Some(package) => xtask.env("CARGO_MANIFEST_DIR", package),
        None => xtask.env_remove("CARGO_MANIFEST_DIR"),
    };
    xtask.status().unwrap().success()
}

fn is_generated(checkout: &TempDir) -> bool {
    let exists = |path: &str| checkout.path().join(path).exists();
    exists("schemas/generated/ping.json") && exists(&format!("{GENERATOR}.ran"))
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

//! Tests of a private engine, the image `base`, the node's rules and `up`. They need root, and report
//! where it is missing.

mod container;
mod ends;
mod first_day;
mod image;
mod incus;
mod isolation;
mod lifecycle;
mod outside;
mod rootless;
mod run;
mod ssh;
mod traces;
mod up;

use anyhow::{Context, Result};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use wharf_testkit::engine::{Allowed, Kind, Options, PrivateEngine};
use wharf_testkit::process::is_root;
use wharf_testkit::progress::skipped;
use wharf_testkit::{images, workspace};

/// Engines do not disturb each other, but a small machine is too slow for two.
static TURN: Mutex<()> = Mutex::new(());

/// All checks share an engine, and leave it as it was.
#[test]
fn private_engine() {
    if !is_root() {
        skipped("the private engine needs root");
        return;
    }
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let result = with_engine();
    let remains = lifecycle::remains().unwrap();
    lifecycle::assert_none(&remains, &[&result.unwrap(), "engine-test", "whfxtask"]);
}

/// The page of a new user, with a second run beside the first, and an engine that is killed.
#[test]
fn the_first_day_goes_as_its_page_says() -> Result<()> {
    removes_everything(first_day::as_written, first_day::DIRECTORY)
}

#[test]
fn however_up_ends_it_leaves_nothing() -> Result<()> {
    removes_everything(ends::all, ends::DIRECTORY)
}

/// The first steps of a user with Incus.
#[test]
fn up_works_on_a_private_incus() -> Result<()> {
    removes_everything(incus::all, incus::DIRECTORY)
}

/// The first steps of a user with Podman and without root.
#[test]
fn up_works_on_a_podman_without_root() -> Result<()> {
    removes_everything(rootless::up_works, rootless::NAME)
}

/// Runs a check alone; afterwards nothing on the machine has this in its name.
fn removes_everything(check: fn() -> Result<()>, name: &str) -> Result<()> {
    if !is_root() {
        skipped("`up` on engines needs root");
        return Ok(());
    }
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let result = check();
    let remains = lifecycle::remains()?;
    result?;
    lifecycle::assert_none(&remains, &[name]);
    Ok(())
}

/// Runs all checks on an engine, and returns its id.
fn with_engine() -> Result<String> {
    let mut engine = start("engine-test")?;
    images::ensure(&engine.client(), &["base"])?;
    let client = engine.client();
    let key = ssh::KeyPair::make(&workspace::target().join("engine-test-ssh"))?;
    check("logins", image::logins(&client, &key))?;
    check(
        "limits",
        image::limits(&client, &key, engine.enforces_disk_size()),
    )?;
    check(
        "restart and power off",
        image::restart_and_power_off(&client, &key),
    )?;
    check("stop", image::stop(&client, &key))?;
    check(
        "killed first start",
        image::killed_first_start(&client, &key),
    )?;
    check(
        "pause and resume",
        lifecycle::pause_and_resume(&mut engine, &key),
    )?;
    check("two engines", lifecycle::beside_another(&engine, &key))?;
    // The last check, because it removes the rules.
    check("isolation", isolation::holds(&client, &key))?;
    let socket = engine.endpoint().to_string();
    engine.stop()?;
    let id = socket
        .split('/')
        .find_map(|part| part.strip_prefix("wharf-"));
    id.map(str::to_owned)
        .context("no id in the path of the socket")
}

fn start(name: &str) -> Result<PrivateEngine> {
    let dir = workspace::target().join(name);
    PrivateEngine::start(Options {
        kind: Kind::Dockerd,
        dir,
        disk_gib: Some(20),
        disposable: true,
        allowed: Allowed::new(&[])?,
        tls: None,
    })
}

fn check(name: &'static str, result: Result<()>) -> Result<()> {
    if result.is_ok() {
        println!("ok: {name}");
    }
    result.context(name)
}

/// Reads a file; empty if it does not exist.
fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

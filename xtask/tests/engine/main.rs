//! The private engine, the image `base` and the node's rules, for real: needs root, and says so
//! where it is missing.

mod container;
mod image;
mod isolation;
mod lifecycle;
mod outside;
mod rootless;
mod ssh;
mod up;

use anyhow::{Context, Result};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use xtask::engine::{Kind, Options, PrivateEngine};
use xtask::process::is_root;
use xtask::{images, workspace};

/// Engines bear each other, but a small machine does not bear two at once.
static TURN: Mutex<()> = Mutex::new(());

/// One engine for all checks: each of them leaves it as it was.
#[test]
fn private_engine() {
    if !is_root() {
        println!("skipped: an engine of our own needs root");
        return;
    }
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let result = with_engine();
    let traces = lifecycle::traces().unwrap();
    lifecycle::assert_none(&traces, &[&result.unwrap(), "engine-test", "whfxtask"]);
}

/// What a newcomer does with `up`.
#[test]
fn up_comes_up_again_and_its_check_leaves_nothing() -> Result<()> {
    leaves_nothing(up::works, up::DIRECTORY)
}

/// What a user does who has a Podman and no root.
#[test]
fn up_works_on_a_podman_without_root() -> Result<()> {
    leaves_nothing(rootless::up_works, rootless::NAME)
}

/// By itself; afterwards nothing on the machine has this in its name.
fn leaves_nothing(check: fn() -> Result<()>, name: &str) -> Result<()> {
    if !is_root() {
        println!("skipped: engines and accounts of our own need root");
        return Ok(());
    }
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let result = check();
    let traces = lifecycle::traces()?;
    result?;
    lifecycle::assert_none(&traces, &[name]);
    Ok(())
}

/// Gives what names the engine on the machine.
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
    // Last: it switches the rules off.
    check("isolation", isolation::holds(&client, &key))?;
    let socket = engine.endpoint().to_string();
    engine.stop()?;
    let id = socket
        .split('/')
        .find_map(|part| part.strip_prefix("wharf-"));
    id.map(str::to_owned).context("an engine has an id")
}

fn start(name: &str) -> Result<PrivateEngine> {
    let dir = workspace::target().join(name);
    PrivateEngine::start(Options {
        kind: Kind::Dockerd,
        dir,
        disk_gib: Some(20),
        disposable: true,
    })
}

fn check(name: &'static str, result: Result<()>) -> Result<()> {
    if result.is_ok() {
        println!("ok: {name}");
    }
    result.context(name)
}

/// Reads a small file whole, empty when it is not there.
fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

//! Tests of `up` on engines. They need root, and report where it is missing.

#![allow(clippy::indexing_slicing, reason = "JSON: a missing key is null")]

mod ends;
mod first_day;
mod image;
mod incus;
mod rootless;
mod run;
mod traces;
mod up;

use anyhow::Result;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use wharf_testkit::process::is_root;
use wharf_testkit::progress::skipped;
use wharf_testkit::workspace;

/// A small machine is too slow for more than two engines: one dockerd, and one of another kind.
static DOCKERD: Mutex<()> = Mutex::new(());
static OTHERS: Mutex<()> = Mutex::new(());

/// The page of a new user, with a second run beside the first, and an engine that is killed.
#[test]
fn the_first_day_goes_as_its_page_says() -> Result<()> {
    in_turn(&DOCKERD, "first-day", first_day::as_written)
}

#[test]
fn however_up_ends_it_leaves_nothing() -> Result<()> {
    in_turn(&DOCKERD, "up-test", ends::all)
}

/// The first steps of a user with Incus.
#[test]
fn up_works_on_a_private_incus() -> Result<()> {
    in_turn(&OTHERS, "up-incus-test", incus::all)
}

/// The first steps of a user with Podman and without root.
#[test]
fn up_works_on_a_podman_without_root() -> Result<()> {
    in_turn(&OTHERS, rootless::NAME, rootless::up_works)
}

/// Runs a check in a new directory with this name. Afterwards nothing on the machine has its path.
fn in_turn(turn: &Mutex<()>, name: &str, check: fn(&Path) -> Result<()>) -> Result<()> {
    if !is_root() {
        skipped("`up` on engines needs root");
        return Ok(());
    }
    let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = workspace::target().join(name);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir)?;
    check(&dir)?;
    fs::remove_dir_all(&dir)?;
    traces::none(&[dir.display().to_string()])
}

/// Reads a file; empty if it does not exist.
fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

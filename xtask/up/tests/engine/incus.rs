//! `cargo xtask up --incus`: a check, and a kill with `down` after it. Neither leaves anything on the
//! machine, and the instances' disks are there at the next run.

use crate::ends::{down, in_order};
use crate::run::{Run, names};
use crate::traces;
use crate::up::{START_LIMIT, Up};
use anyhow::{Result, ensure};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use wharf_testkit::{incus, progress};

pub fn all(dir: &Path) -> Result<()> {
    if !incus::can_install() {
        progress::skipped("this machine has no package of Incus");
        return Ok(());
    }
    in_order(
        dir,
        &[
            ("a check", check),
            ("killed, then `down`", killed_then_down),
            ("the next run", next_run),
        ],
    )
}

fn check(dir: &Path) -> Result<()> {
    let mut check = Up::start(dir, &["--incus", "--check"])?;
    let own = dir.join(format!("check-{}", check.id()));
    let status = check.end(START_LIMIT)?;
    ensure!(status.success(), "{status}: {}", check.output());
    traces::none(&names(&own))
}

fn killed_then_down(dir: &Path) -> Result<()> {
    let mut up = Up::start(dir, &["--incus"])?;
    up.wait_for("Ctrl-C stops")?;
    let own = dir.join("incus");
    let key = fs::metadata(own.join("incus-client.key"))?;
    ensure!(key.permissions().mode() & 0o777 == 0o600);
    Run::of(&own)?.on_hello("echo x >kept; sync")?;
    up.kill()?;
    ensure!(!traces::with(&names(&own))?.is_empty(), "nothing is left");
    down(dir)?;
    traces::none(&names(&own))
}

/// The next run has the instance with its disk.
fn next_run(dir: &Path) -> Result<()> {
    let mut up = Up::start(dir, &["--incus"])?;
    up.wait_for("Ctrl-C stops")?;
    ensure!(up.output().contains("hello is running"), "{}", up.output());
    let own = dir.join("incus");
    Run::of(&own)?.on_hello("cat kept")?;
    up.ctrl_c();
    up.ends_well()?;
    traces::none(&names(&own))
}

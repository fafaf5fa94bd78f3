//! The ends of `cargo xtask up`: Ctrl-C during the start and with a dead engine, a kill, `down`, and
//! `--check`. None leaves anything on the machine.

use crate::run::{Run, engine_id, names};
use crate::traces;
use crate::up::{START_LIMIT, Up};
use anyhow::{Context, Result, ensure};
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::slice;
use std::time::{Duration, Instant};
use wharf_testkit::process::{output, wait_until};

/// The time in which a run starts the instances of an earlier one.
const INSTANCE_LIMIT: Duration = Duration::from_secs(60);

/// A part of the test, with its name.
pub type Step = (&'static str, fn(&Path) -> Result<()>);

pub fn all(dir: &Path) -> Result<()> {
    in_order(
        dir,
        &[
            ("during the start", during_the_start),
            ("killed, then a check", killed_then_a_check),
            ("a full machine", full),
            ("killed, then `down`", killed_then_down),
        ],
    )
}

/// Runs the steps, and prints their times.
pub fn in_order(dir: &Path, steps: &[Step]) -> Result<()> {
    for (name, step) in steps {
        let start = Instant::now();
        step(dir).context(*name)?;
        println!("{name}: {:.1?}", start.elapsed());
    }
    Ok(())
}

fn during_the_start(dir: &Path) -> Result<()> {
    for moment in ["Starting a private dockerd", "Starting Wharf"] {
        let mut up = Up::start(dir, &[])?;
        up.wait_for(moment)?;
        up.ctrl_c();
        up.ctrl_c();
        up.end(START_LIMIT)?;
        traces::none(&names(dir)).context(moment)?;
    }
    Ok(())
}

/// `hello` is deleted, and another instance has its room. The next run serves nevertheless. This one
/// ends while its engine is dead.
fn full(dir: &Path) -> Result<()> {
    let mut up = running(dir, "hello is running")?;
    Run::of(dir)?.fill()?;
    let pid = crate::read(format!("/run/wharf-{}/engine.pid", engine_id(dir)));
    output(Command::new("kill").args(["-9", pid.trim()]))?;
    up.ctrl_c();
    up.ends_well()?;
    traces::none(&names(dir))
}

/// The next run in any directory removes what a killed one has left.
fn killed_then_a_check(dir: &Path) -> Result<()> {
    drop(killed(dir, " running after ")?);
    let mut check = Up::start(dir, &["--check"])?;
    let own = dir.join(format!("check-{}", check.id()));
    let mut of_check = Vec::new();
    wait_until(START_LIMIT, || {
        of_check = names(&own);
        of_check.len() == 3 || check.ended().is_some()
    });
    let status = check.end(START_LIMIT)?;
    ensure!(status.success(), "{status}: {}", check.output());
    ensure!(
        check.output().contains("Ending what a killed run left"),
        "{}",
        check.output()
    );
    ensure!(!own.exists(), "the check left its directory");
    traces::none(&[names(dir), of_check].concat())
}

/// `down` ends an engine even if its directory is gone.
fn killed_then_down(dir: &Path) -> Result<()> {
    drop(killed(dir, "There is no room for hello")?);
    fs::remove_dir_all(dir.join("engine"))?;
    down(dir)?;
    traces::none(&names(dir))
}

/// Kills a run, which leaves its engine and an instance. Other programs leave them alone for as long as the
/// result lives.
fn killed(dir: &Path, saying: &str) -> Result<File> {
    let up = running(dir, saying)?;
    let all = names(dir);
    let lines = |name: &String| traces::with(slice::from_ref(name)).unwrap_or_default();
    // A bridge is up while an instance runs in its network.
    let is_up = |lines: Vec<String>| lines.iter().any(|line| line.contains(" UP "));
    let has_instance = || all.last().is_some_and(|bridge| is_up(lines(bridge)));
    let started = all.len() == 3 && wait_until(INSTANCE_LIMIT, has_instance);
    let lock = File::open(dir.join("engine/lock"))?;
    up.kill()?;
    lock.lock()?;
    ensure!(started && has_instance(), "no instance is left: {all:?}");
    let named = all.iter().all(|name| !lines(name).is_empty());
    ensure!(named, "a name of {all:?} has no trace");
    Ok(lock)
}

fn running(dir: &Path, saying: &str) -> Result<Up> {
    let up = Up::running(dir)?;
    ensure!(up.output().contains(saying), "{}", up.output());
    Ok(up)
}

/// Runs `down`, which ends what runs of all directories have left.
pub fn down(dir: &Path) -> Result<()> {
    let mut down = Command::new(env!("CARGO_BIN_EXE_wharf-up"));
    output(down.arg("down").current_dir(dir)).map(drop)
}

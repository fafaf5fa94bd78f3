//! The ends of `cargo xtask up`: Ctrl-C once and twice, during the start too, a kill, `down`, and
//! `--check`. None leaves anything on the machine.

use crate::lifecycle::{assert_none, remains};
use crate::run::{Run, engine_id};
use crate::traces::Traces;
use crate::up::{START_LIMIT, Up};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use wharf_testkit::process::{output, wait_until};
use wharf_testkit::workspace;

/// The directory of the run, below cargo's target directory.
pub const DIRECTORY: &str = "up-test";
/// The port of the first instance.
const SSH_PORT: u16 = 20_000;
/// The time in which a run starts the instances of an earlier one.
const INSTANCE_LIMIT: Duration = Duration::from_secs(60);

pub fn all() -> Result<()> {
    let dir = workspace::target().join(DIRECTORY);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir)?;
    ensure!(
        TcpListener::bind(("127.0.0.1", SSH_PORT)).is_ok(),
        "port {SSH_PORT} is taken: end the `up` that may be running"
    );
    let place = Place {
        id: engine_id(&dir),
        before: Traces::read()?,
        dir,
    };
    place.ctrl_c_twice().context("Ctrl-C twice")?;
    place.during_the_start().context("during the start")?;
    place
        .killed_then_a_check()
        .context("killed, then a check")?;
    place.full().context("a full machine")?;
    place.killed_then_down().context("killed, then `down`")?;
    Ok(fs::remove_dir_all(&place.dir)?)
}

struct Place {
    dir: PathBuf,
    id: String,
    before: Traces,
}

impl Place {
    fn ctrl_c_twice(&self) -> Result<()> {
        let mut up = self.running("hello is created and running")?;
        up.ctrl_c();
        up.ctrl_c();
        up.ends_well()?;
        self.is_clean()
    }

    fn during_the_start(&self) -> Result<()> {
        for moment in ["Starting a private dockerd", "Starting Wharf"] {
            let mut up = Up::start(&self.dir, &[])?;
            up.wait_for(moment)?;
            up.ctrl_c();
            up.ctrl_c();
            up.end(START_LIMIT)?;
            self.is_clean().context(moment)?;
        }
        Ok(())
    }

    /// `hello` is deleted, and another instance has its room. The next run serves nevertheless. This one
    /// ends while its engine is dead.
    fn full(&self) -> Result<()> {
        let mut up = self.running("hello is running")?;
        Run::of(&self.dir)?.fill()?;
        let pid = crate::read(format!("/run/wharf-{}/engine.pid", self.id));
        output(Command::new("kill").args(["-9", pid.trim()]))?;
        up.ctrl_c();
        up.ends_well()?;
        self.is_clean()
    }

    /// The next run in any directory removes what a killed one has left.
    fn killed_then_a_check(&self) -> Result<()> {
        self.killed("hello is running")?;
        let mut check = Up::start(&self.dir, &["--check"])?;
        let status = check.end(START_LIMIT)?;
        ensure!(status.success(), "{status}: {}", check.output());
        ensure!(
            check.output().contains("Ending what a killed run left"),
            "{}",
            check.output()
        );
        let left: Vec<_> = fs::read_dir(&self.dir)?
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .filter(|name| name.starts_with("check-"))
            .collect();
        ensure!(left.is_empty(), "the check left {left:?}");
        self.is_clean()
    }

    /// `down` ends an engine even if its directory is gone.
    fn killed_then_down(&self) -> Result<()> {
        self.killed("There is no room for hello")?;
        fs::remove_dir_all(self.dir.join("engine"))?;
        down(&self.dir)?;
        self.is_clean()
    }

    /// Kills a run, which leaves its engine and an instance.
    fn killed(&self, saying: &str) -> Result<()> {
        let up = self.running(saying)?;
        let is_there = |part: &str| {
            let traces = Traces::read().map(|now| now.more_than(&self.before));
            traces.is_ok_and(|all| all.iter().any(|trace| trace.contains(part)))
        };
        let parts = ["whf", "veth", &self.id];
        let started = wait_until(INSTANCE_LIMIT, || parts.iter().all(|part| is_there(part)));
        up.kill()?;
        ensure!(started, "the instance has not started");
        ensure!(parts.iter().all(|part| is_there(part)), "nothing is left");
        Ok(())
    }

    fn running(&self, saying: &str) -> Result<Up> {
        let up = Up::running(&self.dir)?;
        ensure!(up.output().contains(saying), "{}", up.output());
        Ok(up)
    }

    fn is_clean(&self) -> Result<()> {
        assert_none(&remains()?, &[&self.id, DIRECTORY]);
        let left = Traces::read()?.more_than(&self.before);
        ensure!(left.is_empty(), "left on the machine: {left:#?}");
        Ok(())
    }
}

/// Runs `down`, which ends what runs of all directories have left.
pub fn down(dir: &Path) -> Result<()> {
    let mut down = Command::new(env!("CARGO_BIN_EXE_wharf-up"));
    output(down.arg("down").current_dir(dir)).map(drop)
}

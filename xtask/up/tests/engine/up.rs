//! `cargo xtask up` as a user runs it at a terminal.

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use wharf_testkit::process::wait_until;

/// Enough to make the image `base`.
pub const START_LIMIT: Duration = Duration::from_secs(300);
const END_LIMIT: Duration = Duration::from_secs(90);

/// A running `up`, ended when dropped.
pub struct Up {
    child: Child,
    output: PathBuf,
}

impl Up {
    pub fn start(dir: &Path, arguments: &[&str]) -> Result<Self> {
        fs::create_dir_all(dir)?;
        let output = dir.join("output");
        let file = File::create(&output)?;
        let child = Command::new(env!("CARGO_BIN_EXE_wharf-up"))
            .args(["up", "--dir"])
            .arg(dir)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            // A Ctrl-C reaches this group alone.
            .process_group(0)
            .spawn()?;
        Ok(Self { child, output })
    }

    /// Starts it, and waits until it serves.
    pub fn running(dir: &Path) -> Result<Self> {
        let mut up = Self::start(dir, &[])?;
        up.wait_for("Ctrl-C stops")?;
        Ok(up)
    }

    /// Waits until it has printed this.
    pub fn wait_for(&mut self, part: &str) -> Result<()> {
        let printed = wait_until(START_LIMIT, || {
            self.output().contains(part) || self.ended().is_some()
        });
        ensure!(printed && self.ended().is_none(), "{}", self.output());
        Ok(())
    }

    /// Presses Ctrl-C: the terminal signals every process of the group.
    pub fn ctrl_c(&self) {
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::INT);
    }

    /// Waits for its end, and fails unless it succeeds.
    pub fn ends_well(&mut self) -> Result<()> {
        let status = self.end(END_LIMIT)?;
        ensure!(status.success(), "{status}: {}", self.output());
        Ok(())
    }

    /// Kills it, as a crash would.
    pub fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    pub fn output(&self) -> String {
        crate::read(&self.output)
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    pub fn end(&mut self, limit: Duration) -> Result<ExitStatus> {
        wait_until(limit, || self.ended().is_some());
        let ended = self.ended();
        ended.with_context(|| format!("`up` does not end: {}", self.output()))
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        if self.ended().is_none() {
            let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
            let _ = self.end(END_LIMIT);
        }
    }
}

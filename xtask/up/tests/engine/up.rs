//! `cargo xtask up` as a user runs it: started, ended by Ctrl-C, started again, and with `--check`.

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use wharf_testkit::engine::short_hash;
use wharf_testkit::process::wait_until;
use wharf_testkit::workspace;

/// The directory of the run, below cargo's target directory.
pub const DIRECTORY: &str = "up-test";
/// Enough to make the image `base`.
const UP_LIMIT: Duration = Duration::from_secs(300);
const END_LIMIT: Duration = Duration::from_secs(90);
/// The port of the first instance.
const SSH_PORT: u16 = 20_000;

pub fn works() -> Result<()> {
    let dir = workspace::target().join(DIRECTORY);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir)?;
    let id = short_hash(dir.join("engine").as_os_str().as_encoded_bytes());
    ensure!(
        TcpListener::bind(("127.0.0.1", SSH_PORT)).is_ok(),
        "port {SSH_PORT} is taken: end the `up` that may be running"
    );
    let first = starts_and_ends(&dir).context("the first time")?;
    ensure!(first.contains("hello is created and running"), "{first}");
    let second = starts_and_ends(&dir).context("the second time")?;
    ensure!(second.contains("hello is running"), "{second}");
    let mut check = Up::start(&dir, &["--check"])?;
    let status = check.end(UP_LIMIT)?;
    ensure!(status.success(), "{status}: {}", check.output());
    let left: Vec<_> = fs::read_dir(&dir)?
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("check-"))
        .collect();
    ensure!(left.is_empty(), "the check left {left:?}");
    super::lifecycle::assert_none(&super::lifecycle::remains()?, &[&id]);
    Ok(fs::remove_dir_all(&dir)?)
}

/// Returns the output.
fn starts_and_ends(dir: &Path) -> Result<String> {
    let mut up = Up::running(dir)?;
    up.stop()?;
    Ok(up.output())
}

/// A running `up`, ended when dropped.
pub struct Up {
    child: Child,
    output: PathBuf,
}

impl Up {
    pub fn start(dir: &Path, arguments: &[&str]) -> Result<Self> {
        let output = dir.join("output");
        let file = File::create(&output)?;
        let child = Command::new(env!("CARGO_BIN_EXE_wharf-up"))
            .args(["up", "--dir"])
            .arg(dir)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()?;
        Ok(Self { child, output })
    }

    /// Starts it, and waits until it serves.
    pub fn running(dir: &Path) -> Result<Self> {
        let mut up = Self::start(dir, &[])?;
        let started = wait_until(UP_LIMIT, || {
            up.output().contains("Ctrl-C stops") || up.ended().is_some()
        });
        ensure!(started && up.ended().is_none(), "{}", up.output());
        Ok(up)
    }

    /// Ends it by Ctrl-C.
    pub fn stop(&mut self) -> Result<()> {
        self.signal(Signal::INT);
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

    fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    pub fn end(&mut self, limit: Duration) -> Result<ExitStatus> {
        wait_until(limit, || self.ended().is_some());
        let ended = self.ended();
        ended.with_context(|| format!("`up` does not end: {}", self.output()))
    }

    fn signal(&self, signal: Signal) {
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        if self.ended().is_none() {
            self.signal(Signal::TERM);
            let _ = self.end(END_LIMIT);
        }
    }
}

//! `cargo xtask up`, as a user runs it: brought up, ended by Ctrl-C, brought up again, checked.

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use xtask::engine::short_hash;
use xtask::process::wait_until;
use xtask::workspace;

/// Below Cargo's target directory.
pub const DIRECTORY: &str = "up-test";
/// The image `base` may have to be made.
const UP_LIMIT: Duration = Duration::from_secs(300);
const END_LIMIT: Duration = Duration::from_secs(90);
/// Of the first instance.
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
    let first = comes_up_and_ends(&dir).context("the first time")?;
    ensure!(first.contains("hello is created and running"), "{first}");
    let second = comes_up_and_ends(&dir).context("the second time")?;
    ensure!(second.contains("hello is running"), "{second}");
    let mut check = Up::start(&dir, &["--check"])?;
    let status = check.end(UP_LIMIT)?;
    ensure!(status.success(), "{status}: {}", check.said());
    let left: Vec<_> = fs::read_dir(&dir)?
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("check-"))
        .collect();
    ensure!(left.is_empty(), "the check left {left:?}");
    super::lifecycle::assert_none(&super::lifecycle::traces()?, &[&id]);
    Ok(fs::remove_dir_all(&dir)?)
}

/// Gives what it said.
fn comes_up_and_ends(dir: &Path) -> Result<String> {
    let mut up = Up::start(dir, &[])?;
    let came = wait_until(UP_LIMIT, || {
        up.said().contains("Ctrl-C stops") || up.ended().is_some()
    });
    ensure!(came && up.ended().is_none(), "{}", up.said());
    up.signal(Signal::INT);
    let status = up.end(END_LIMIT)?;
    ensure!(status.success(), "{status}: {}", up.said());
    Ok(up.said())
}

/// One that runs. Ended when dropped.
pub struct Up {
    child: Child,
    output: PathBuf,
}

impl Up {
    pub fn start(dir: &Path, arguments: &[&str]) -> Result<Self> {
        let output = dir.join("output");
        let file = File::create(&output)?;
        let child = Command::new(env!("CARGO_BIN_EXE_xtask"))
            .args(["up", "--dir"])
            .arg(dir)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()?;
        Ok(Self { child, output })
    }

    pub fn said(&self) -> String {
        crate::read(&self.output)
    }

    fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    pub fn end(&mut self, limit: Duration) -> Result<ExitStatus> {
        wait_until(limit, || self.ended().is_some());
        let ended = self.ended();
        ended.with_context(|| format!("it does not end: {}", self.said()))
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

//! The process of an engine.

use super::processes;
use crate::http::{HttpClient, Request};
use crate::process::wait_until;
use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// From the start to the first response; it takes seconds on an idle machine.
const START_LIMIT: Duration = Duration::from_secs(180);
/// From TERM to the end; instances go on running.
const STOP_LIMIT: Duration = Duration::from_secs(30);
/// Lines of the log that an error has.
const LAST_LINES: usize = 8;

/// A running engine.
#[derive(Debug)]
pub(crate) struct Daemon {
    child: Child,
    log: PathBuf,
}

impl Daemon {
    /// Starts the process, which appends to its log.
    pub fn start(mut command: Command, log: &Path) -> Result<Self> {
        let file = File::options().create(true).append(true).open(log)?;
        let path = std::env::var("PATH").unwrap_or_default();
        let child = command
            .env("PATH", format!("{path}:/usr/local/sbin:/usr/sbin:/sbin"))
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            // A Ctrl-C at the terminal must reach only this program, which stops the engine in order.
            .process_group(0)
            .spawn()
            .context("cannot start the engine")?;
        let log = log.to_owned();
        Ok(Self { child, log })
    }

    /// Waits until the process answers a request for this path.
    pub fn await_answer(&mut self, client: &HttpClient, path: &str) -> Result<()> {
        let mut ended = None;
        let answers = wait_until(START_LIMIT, || {
            ended = self.ended();
            let request = Request::new("GET", path).timeout(Duration::from_secs(2));
            ended.is_some()
                || client
                    .send(request)
                    .is_ok_and(|answer| answer.status == 200)
        });
        let why = match ended {
            None if answers => return Ok(()),
            Some(status) => format!("ended ({status})"),
            None => format!("did not respond within {START_LIMIT:?}"),
        };
        bail!("the engine {why}; {}", self.last_lines(LAST_LINES));
    }

    /// The last lines of its log, after the file's name.
    pub fn last_lines(&self, count: usize) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = text.lines().collect();
        let last = lines.get(lines.len().saturating_sub(count)..);
        let last = last.unwrap_or_default().join("\n");
        format!("the end of {}:\n{last}", self.log.display())
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The exit status, if the process has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Kills the process, as a crash would. Instances go on running.
    pub fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Ends the process. Instances go on running.
    pub fn stop(&mut self) {
        if self.ended().is_none() {
            processes::end(self.id(), STOP_LIMIT);
            let _ = self.child.wait();
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.stop();
    }
}

//! The engine's process.

use super::layout::Layout;
use super::stale;
use crate::http::{Client, Request};
use crate::process::wait_until;
use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// From the start to the first response; it takes under a second on an idle machine.
const START_LIMIT: Duration = Duration::from_secs(60);
/// From TERM to the end; containers go on running.
const STOP_LIMIT: Duration = Duration::from_secs(20);

/// A running engine.
#[derive(Debug)]
pub(super) struct Daemon {
    child: Child,
}

impl Daemon {
    /// Starts the process, and waits until it responds.
    pub fn start(mut command: Command, name: &str, layout: &Layout) -> Result<Self> {
        let log = File::create(layout.log())?;
        let child = command
            .env("PATH", path_with_sbin())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            // A Ctrl-C at the terminal must reach only this program, which stops the engine in order.
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        fs::write(layout.pidfile(), child.id().to_string())?;
        let mut daemon = Self { child };
        let client = Client::new(crate::http::Endpoint::Unix(layout.socket()));
        let mut ended = None;
        let responds = wait_until(START_LIMIT, || {
            ended = daemon.child.try_wait().ok().flatten();
            let ping = Request::new("GET", "/_ping").timeout(Duration::from_secs(2));
            ended.is_some()
                || client
                    .send(ping)
                    .is_ok_and(|response| response.status == 200)
        });
        if responds && ended.is_none() {
            return Ok(daemon);
        }
        daemon.stop();
        let why = match ended {
            Some(status) => format!("{name} ended ({status})"),
            None => format!("{name} did not respond within {START_LIMIT:?}"),
        };
        bail!(
            "{why}; the end of {}:\n{}",
            layout.log().display(),
            tail(layout)
        );
    }

    /// The exit status, if the process has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Ends the process. Containers go on running.
    pub fn stop(&mut self) {
        let pid = self.child.id();
        if wait_until(Duration::ZERO, || {
            matches!(self.child.try_wait(), Ok(Some(_)))
        }) {
            return;
        }
        stale::end(pid, STOP_LIMIT);
        let _ = self.child.wait();
    }
}

fn path_with_sbin() -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    format!("{path}:/usr/local/sbin:/usr/sbin:/sbin")
}

fn tail(layout: &Layout) -> String {
    let log = fs::read_to_string(layout.log()).unwrap_or_default();
    let lines: Vec<_> = log.lines().collect();
    lines
        .iter()
        .skip(lines.len().saturating_sub(8))
        .copied()
        .collect::<Vec<_>>()
        .join("\n")
}

//! The engine's process.

use super::leftovers;
use super::place::Place;
use crate::http::{Client, Request};
use crate::process::wait_until;
use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// From start to the first answer; it takes under a second on an idle machine.
const START_LIMIT: Duration = Duration::from_secs(60);
/// From TERM to the end; running containers are not waited for.
const STOP_LIMIT: Duration = Duration::from_secs(20);

/// A running engine.
#[derive(Debug)]
pub(super) struct Daemon {
    child: Child,
}

impl Daemon {
    /// Starts it and waits until it answers.
    pub fn start(mut command: Command, name: &str, place: &Place) -> Result<Self> {
        let log = File::create(place.log())?;
        let child = command
            .env("PATH", path_with_sbin())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            // A Ctrl-C at the terminal is for xtask, which then stops things in order.
            .process_group(0)
            .spawn()
            .with_context(|| format!("{name} does not start"))?;
        fs::write(place.pidfile(), child.id().to_string())?;
        let mut daemon = Self { child };
        let client = Client::new(crate::http::Endpoint::Unix(place.socket()));
        let mut ended = None;
        let answers = wait_until(START_LIMIT, || {
            ended = daemon.child.try_wait().ok().flatten();
            let ping = Request::new("GET", "/_ping").timeout(Duration::from_secs(2));
            ended.is_some() || client.send(ping).is_ok_and(|answer| answer.status == 200)
        });
        if answers && ended.is_none() {
            return Ok(daemon);
        }
        daemon.stop();
        let why = match ended {
            Some(status) => format!("{name} ended ({status})"),
            None => format!("{name} did not answer within {START_LIMIT:?}"),
        };
        bail!(
            "{why}; the end of {}:\n{}",
            place.log().display(),
            tail(place)
        );
    }

    /// Ends the process. Containers go on.
    pub fn stop(&mut self) {
        let pid = self.child.id();
        if wait_until(Duration::ZERO, || {
            matches!(self.child.try_wait(), Ok(Some(_)))
        }) {
            return;
        }
        leftovers::end(pid, STOP_LIMIT);
        let _ = self.child.wait();
    }
}

fn path_with_sbin() -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    format!("{path}:/usr/local/sbin:/usr/sbin:/sbin")
}

fn tail(place: &Place) -> String {
    let log = fs::read_to_string(place.log()).unwrap_or_default();
    let lines: Vec<_> = log.lines().collect();
    lines
        .iter()
        .skip(lines.len().saturating_sub(8))
        .copied()
        .collect::<Vec<_>>()
        .join("\n")
}

//! The `wharf serve` process.

use crate::http::{Client, Endpoint};
use crate::process::{find, wait_until};
use crate::{say, workspace};
use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use std::cell::RefCell;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

const START_LIMIT: Duration = Duration::from_secs(30);
/// It finishes running requests and driver calls.
const STOP_LIMIT: Duration = Duration::from_secs(30);

/// A running Wharf. Dropping it stops it.
pub struct Server {
    child: RefCell<Child>,
    log: PathBuf,
    address: String,
}

impl Server {
    /// Starts it and waits until it serves.
    pub fn start(config: &Path, log: &Path) -> Result<Self> {
        say::step("Starting Wharf");
        let output = log.with_extension("out");
        let child = command()
            .args(["serve", "--config"])
            .arg(config)
            .stdin(Stdio::null())
            .stdout(File::create(&output)?)
            .stderr(File::create(log)?)
            .spawn()
            .context("wharf does not start")?;
        let mut server = Self {
            child: RefCell::new(child),
            log: log.to_owned(),
            address: String::new(),
        };
        let listening = || {
            let text = fs::read_to_string(&output).unwrap_or_default();
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix("listening on "));
            line.map(|url| url.trim().to_owned())
        };
        wait_until(START_LIMIT, || {
            listening().is_some() || server.ended().is_some()
        });
        let Some(address) = listening() else {
            let end = fs::read_to_string(log).unwrap_or_default();
            bail!("wharf does not serve; {} says:\n{end}", log.display());
        };
        say::note(&format!(
            "It serves at {address}; its log is {}.",
            log.display()
        ));
        server.address = address;
        Ok(server)
    }

    /// `http://ADDRESS:PORT`.
    pub fn url(&self) -> &str {
        &self.address
    }

    /// Speaks to it.
    pub fn client(&self) -> Result<Client> {
        Ok(Client::new(Endpoint::parse(&self.address)?))
    }

    /// Of its process.
    pub fn process_id(&self) -> u32 {
        self.child.borrow().id()
    }

    /// Where its log is.
    pub fn log(&self) -> String {
        self.log.display().to_string()
    }

    /// Its status, if it ended.
    pub fn ended(&self) -> Option<ExitStatus> {
        self.child.borrow_mut().try_wait().ok().flatten()
    }

    /// Ends it in order.
    pub fn stop(self) {}

    /// Ends it as a crash does.
    pub fn kill(self) -> Result<()> {
        let mut child = self.child.borrow_mut();
        child.kill()?;
        child.wait()?;
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let pid = Pid::from_child(&self.child.borrow());
        if self.ended().is_some() {
            return;
        }
        let _ = kill_process(pid, Signal::TERM);
        if !wait_until(STOP_LIMIT, || self.ended().is_some()) {
            say::note("Wharf does not end; it is killed.");
            let _ = self.child.get_mut().kill();
            let _ = self.child.get_mut().wait();
        }
    }
}

/// Wharf, in a process group of its own so that a Ctrl-C is ours to hand on, and told to end if
/// this process is killed.
fn command() -> Command {
    use std::os::unix::process::CommandExt;
    let binary = workspace::wharf_binary();
    let mut command = match find("setpriv") {
        Some(setpriv) => {
            let mut command = Command::new(setpriv);
            command.args(["--pdeathsig", "TERM", "--"]).arg(binary);
            command
        }
        None => Command::new(binary),
    };
    command.process_group(0);
    command
}

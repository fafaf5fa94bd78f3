//! The process of a server, `wharf serve`.

use crate::http::{Endpoint, HttpClient};
use crate::process::{find, wait_until};
use crate::{progress, workspace};
use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use std::cell::RefCell;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

const START_LIMIT: Duration = Duration::from_secs(90);
/// A stopping server finishes requests and driver calls.
const STOP_LIMIT: Duration = Duration::from_secs(90);

/// A running server. Dropping it stops the process.
pub struct Server {
    child: RefCell<Child>,
    log: PathBuf,
    address: String,
}

impl Server {
    /// Starts a server, and waits until it listens.
    pub fn start(config: &Path, log: &Path) -> Result<Self> {
        progress::step("Starting Wharf");
        let output = log.with_extension("out");
        let child = command()
            .args(["serve", "--config"])
            .arg(config)
            .stdin(Stdio::null())
            .stdout(File::create(&output)?)
            .stderr(File::create(log)?)
            .spawn()
            .context("cannot start wharf")?;
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
            bail!("wharf does not listen; its log {}:\n{end}", log.display());
        };
        progress::note(&format!(
            "Wharf listens at {address}; its log is {}.",
            log.display()
        ));
        server.address = address;
        Ok(server)
    }

    /// `http://ADDRESS:PORT`.
    pub fn url(&self) -> &str {
        &self.address
    }

    /// A client of the server.
    pub fn client(&self) -> Result<HttpClient> {
        Ok(HttpClient::new(Endpoint::parse(&self.address)?))
    }

    /// The process id.
    pub fn process_id(&self) -> u32 {
        self.child.borrow().id()
    }

    /// The path of the log.
    pub fn log(&self) -> String {
        self.log.display().to_string()
    }

    /// The exit status, if the process has ended.
    pub fn ended(&self) -> Option<ExitStatus> {
        self.child.borrow_mut().try_wait().ok().flatten()
    }

    /// Stops the server gracefully.
    pub fn stop(self) {}

    /// Kills the process, as a crash would.
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
            progress::note("Wharf does not end; killing it.");
            let _ = self.child.get_mut().kill();
            let _ = self.child.get_mut().wait();
        }
    }
}

/// The command of the server. Its own process group keeps a Ctrl-C at the terminal from it; if this
/// process is killed, the kernel ends it.
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

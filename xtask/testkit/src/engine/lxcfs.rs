//! lxcfs, which shows instances their own CPUs and memory. The engines of a machine share one.

use super::processes;
use crate::packages::Need;
use crate::process::{command, run, succeeds, wait_until};
use crate::progress;
use anyhow::{Context, Result, bail};
use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

/// The package.
pub(super) const NEED: Need = Need {
    program: "lxcfs",
    package: "lxcfs",
    why: "shows instances their own size",
};

/// The directory of Debian's service.
const DIRECTORY: &str = "/var/lib/lxcfs";
/// A file in it.
const FILE: &str = "/var/lib/lxcfs/proc/meminfo";
/// The process, if an engine has started it.
const PIDFILE: &str = "/run/wharf-lxcfs.pid";
/// A lock that each engine shares.
const LOCK: &str = "/run/wharf-lxcfs.lock";
/// From the start to its files.
const START_LIMIT: Duration = Duration::from_secs(60);
/// From TERM to the end.
const STOP_LIMIT: Duration = Duration::from_secs(20);

/// A share of the machine's lxcfs. The last one ends it, if an engine has started it.
#[derive(Debug)]
pub(crate) struct Lxcfs {
    lock: File,
    /// The process, if this engine has started it.
    child: Option<Child>,
}

impl Lxcfs {
    /// Starts lxcfs, unless it runs. Without it, instances see the size of the machine.
    pub fn share() -> Option<Self> {
        let shared = Self::start();
        shared
            .inspect_err(|error| {
                progress::note(&format!("Instances see the machine's size: {error:#}"));
            })
            .ok()
    }

    /// Ends the process that a killed run has left, unless an engine shares it.
    pub fn end_unused() {
        if let Ok(lock) = File::create(LOCK) {
            drop(Self { lock, child: None });
        }
    }

    fn start() -> Result<Self> {
        let lock = File::create(LOCK).context(LOCK)?;
        // While no engine shares lxcfs, this one starts it.
        let child = match lock.try_lock() {
            Ok(()) => run_unless_it_runs()?,
            Err(TryLockError::WouldBlock) => None,
            Err(TryLockError::Error(error)) => return Err(error.into()),
        };
        lock.lock_shared().context(LOCK)?;
        if !Path::new(FILE).exists() {
            bail!("lxcfs has ended");
        }
        Ok(Self { lock, child })
    }
}

fn run_unless_it_runs() -> Result<Option<Child>> {
    // Its files give an error if it was killed.
    if fs::metadata(FILE).is_err_and(|error| error.kind() != ErrorKind::NotFound) {
        run(command("umount").args(["--lazy", DIRECTORY]))?;
    }
    if Path::new(FILE).exists() {
        return Ok(None);
    }
    fs::create_dir_all(DIRECTORY)?;
    // It stays in the foreground. A Ctrl-C at the terminal must not end it before the instances.
    let mut child = command(NEED.program)
        .args(["--enable-cfs", "--enable-loadavg", "--pidfile", PIDFILE])
        .arg(DIRECTORY)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .context("cannot start lxcfs")?;
    if !wait_until(START_LIMIT, || Path::new(FILE).exists()) {
        end(&mut child);
        bail!("lxcfs has no {FILE} after {START_LIMIT:?}");
    }
    Ok(Some(child))
}

fn end(child: &mut Child) {
    processes::end(child.id(), STOP_LIMIT);
    let _ = child.wait();
}

/// Ends the process that a killed run has left.
fn end_abandoned() {
    let is_lxcfs = |line: &str| line.contains(PIDFILE);
    if let Some(pid) = processes::of_pidfile(Path::new(PIDFILE), is_lxcfs) {
        processes::end(pid, STOP_LIMIT);
    }
}

impl Drop for Lxcfs {
    fn drop(&mut self) {
        // Other engines have the lock too.
        if self.lock.unlock().is_err() || self.lock.try_lock().is_err() {
            return;
        }
        match &mut self.child {
            Some(child) => end(child),
            None => end_abandoned(),
        }
        let _ = fs::remove_file(PIDFILE);
        if fs::metadata(FILE).is_err_and(|error| error.kind() != ErrorKind::NotFound) {
            succeeds(command("umount").args(["--lazy", DIRECTORY]));
        }
    }
}

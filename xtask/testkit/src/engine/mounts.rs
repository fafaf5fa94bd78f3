//! Mounts below a directory, and mount namespaces that outlive their processes.

use crate::process::{command, run, succeeds};
use anyhow::{Context, Result};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Mount points at or below `root`, innermost last.
pub(super) fn below(root: &Path) -> Result<Vec<PathBuf>> {
    let table = fs::read_to_string("/proc/self/mountinfo").context("/proc/self/mountinfo")?;
    let points = table
        .lines()
        .filter_map(|line| line.split(' ').nth(4))
        .map(PathBuf::from);
    Ok(points.filter(|point| point.starts_with(root)).collect())
}

/// Whether `path` is a mount point.
pub(super) fn is_at(path: &Path) -> Result<bool> {
    Ok(below(path)?.iter().any(|point| point == path))
}

/// Unmounts everything at or below `root`; a loop device goes with its last mount.
pub(crate) fn unmount_all(root: &Path) -> Result<()> {
    for point in below(root)?.iter().rev() {
        if !succeeds(command("umount").arg(point)) {
            run(command("umount").arg("--lazy").arg(point))?;
        }
    }
    Ok(())
}

/// Binds a directory to a mount point.
pub(crate) fn bind(from: &Path, to: &Path) -> Result<()> {
    run(command("mount").arg("--bind").arg(from).arg(to))
}

/// A mount namespace, which the file `anchor` keeps while no process is in it.
pub(crate) struct Namespace {
    pub anchor: PathBuf,
}

impl Namespace {
    /// Makes the namespace and runs a shell script in it, unless an earlier start has. `network` is a file of
    /// the network namespace of the script.
    pub fn make(&self, network: Option<&Path>, script: &str, arguments: &[&Path]) -> Result<()> {
        let directory = self.anchor.parent().context("no directory")?;
        if is_at(&self.anchor)? {
            return Ok(());
        }
        if !is_at(directory)? {
            fs::create_dir_all(directory)?;
            // A namespace can only be kept below a mount that no other namespace gets.
            bind(directory, directory)?;
            run(command("mount").arg("--make-private").arg(directory))?;
        }
        File::create(&self.anchor)?;
        let mut unshare = match network {
            Some(network) => {
                let mut nsenter = command("nsenter");
                nsenter
                    .arg(format!("--net={}", network.display()))
                    .arg("unshare");
                nsenter
            }
            None => command("unshare"),
        };
        unshare
            .arg(format!("--mount={}", self.anchor.display()))
            .args(["--propagation", "private", "sh", "-euc", script, "sh"])
            .args(arguments);
        run(&mut unshare)
    }

    /// A command that runs in the namespace, and in the network namespace of a file.
    pub fn command(&self, network: Option<&Path>, program: &str) -> Command {
        let mut nsenter = command("nsenter");
        nsenter.args(network.map(|network| format!("--net={}", network.display())));
        nsenter
            .arg(format!("--mount={}", self.anchor.display()))
            .arg(program);
        nsenter
    }
}

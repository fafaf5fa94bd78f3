//! Programs from the distribution's packages.

use crate::process::{command, find, is_root, run};
use crate::progress;
use anyhow::{Result, bail};
use std::process::Stdio;

/// A program, its package in Debian and Ubuntu, and its purpose.
#[derive(Debug, Clone, Copy)]
pub struct Need {
    /// The name in PATH.
    pub program: &'static str,
    /// The package that is installed if the program is missing.
    pub package: &'static str,
    /// The purpose, for the user.
    pub why: &'static str,
}

/// Installs missing packages with apt, which needs root. Does nothing if no program is missing.
pub fn ensure(needs: &[Need]) -> Result<()> {
    ensure_unless(needs, |need| find(need.program).is_some())
}

/// Installs the packages of needs that are not `present`, for needs beyond a program in PATH.
pub fn ensure_unless(needs: &[Need], present: impl Fn(&Need) -> bool) -> Result<()> {
    let missing: Vec<&Need> = needs.iter().filter(|need| !present(need)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let list: Vec<String> = missing
        .iter()
        .map(|need| format!("{} ({})", need.package, need.why))
        .collect();
    let names = missing.iter().map(|need| need.package);
    if !is_root() || find("apt-get").is_none() {
        let names: Vec<_> = names.collect();
        bail!(
            "missing on this machine: {}.\nInstall with: sudo apt-get install {}",
            list.join(", "),
            names.join(" ")
        );
    }
    progress::step(&format!("Installing {}", list.join(", ")));
    run(apt().args(["update", "-q=2"]))?;
    run(apt()
        .args(["install", "-y", "-q=2", "--no-install-recommends"])
        .args(names)
        .stdout(Stdio::null()))?;
    let still = missing.iter().find(|need| !present(need));
    if let Some(need) = still {
        bail!(
            "the package {} is installed but has no {}",
            need.package,
            need.program
        );
    }
    Ok(())
}

fn apt() -> std::process::Command {
    let mut apt = command("apt-get");
    apt.env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null());
    apt
}

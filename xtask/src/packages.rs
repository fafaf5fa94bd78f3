//! Programs that come from the distribution's packages.

use crate::process::{command, find, is_root, run};
use crate::say;
use anyhow::{Result, bail};
use std::process::Stdio;

/// A program, the Debian and Ubuntu package it is in, and what it is needed for.
#[derive(Debug, Clone, Copy)]
pub struct Need {
    /// Looked for in PATH.
    pub program: &'static str,
    /// Installed when the program is missing.
    pub package: &'static str,
    /// Told to the user.
    pub why: &'static str,
}

/// Installs what is missing through apt. Does nothing, and asks for nothing, when all is there.
pub fn ensure(needs: &[Need]) -> Result<()> {
    ensure_unless(needs, |need| find(need.program).is_some())
}

/// The same for what is more than a program in PATH: `present` looks whether it is there.
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
    say::step(&format!("Installing {}", list.join(", ")));
    run(apt().args(["update", "-q=2"]))?;
    run(apt()
        .args(["install", "-y", "-q=2", "--no-install-recommends"])
        .args(names)
        .stdout(Stdio::null()))?;
    let still = missing.iter().find(|need| !present(need));
    if let Some(need) = still {
        bail!(
            "{} is installed and brought no {}",
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

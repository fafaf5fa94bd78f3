//! Programs from the distribution's packages.

use crate::process::{command, find, is_root, run};
use crate::progress;
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::process::Stdio;

/// The lock of [`install`].
const LOCK: &str = "/run/wharf-packages.lock";

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
    install(names, None)?;
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

/// Installs packages with apt, from the suite `from` or from the machine's own.
pub fn install<'a>(names: impl Iterator<Item = &'a str>, from: Option<&str>) -> Result<()> {
    // A second update fails while one runs. An installation itself waits for other programs.
    let lock = File::create(LOCK).context(LOCK)?;
    lock.lock().context(LOCK)?;
    let apt = || {
        let mut apt = command("apt-get");
        apt.env("DEBIAN_FRONTEND", "noninteractive")
            .stdin(Stdio::null());
        apt
    };
    run(apt().args(["update", "-q=2"]))?;
    run(apt()
        .args(["-o", "DPkg::Lock::Timeout=300"])
        .args(["install", "-y", "-q=2", "--no-install-recommends"])
        .args(from.map(|suite| format!("--target-release={suite}")))
        .args(names)
        .stdout(Stdio::null()))
}

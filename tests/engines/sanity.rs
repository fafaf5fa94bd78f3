//! The sanity suite for drivers.

use crate::lab::IMAGE;
use anyhow::{Result, ensure};
use std::process::Command;
use wharf_testkit::workspace::target;

/// Checks the driver of a node of these settings, whose published ports are at `host`.
pub fn suite(settings: &str, node: &str, host: &str) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let config = dir.path().join("wharf.toml");
    let settings = format!("listen = \"127.0.0.1:0\"\ndata_dir = \"data\"\n{settings}");
    std::fs::write(&config, settings)?;
    let output = Command::new(target().join("release/wharf-sanity"))
        .arg("--config")
        .arg(&config)
        .args(["--node", node, "--connect", host])
        .args(["--image", IMAGE, "--ssh"])
        .output()?;
    let said = String::from_utf8(output.stdout)? + &String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success() && said.contains(" 0 failed"),
        "{said}"
    );
    println!("{said}");
    Ok(())
}

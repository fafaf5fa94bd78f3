//! The sanity suite for drivers.

use crate::context::Context;
use crate::lab;
use anyhow::{Result, ensure};
use std::process::Command;
use wharf_testkit::workspace::target;

/// Each instance of the suite has a port of its own.
const N_PORTS: u16 = 32;

pub fn suite(context: &Context) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let config = dir.path().join("wharf.toml");
    let settings = context.settings_with(N_PORTS, &[1, 2]);
    std::fs::write(
        &config,
        format!("listen = \"127.0.0.1:0\"\ndata_dir = \"data\"\n{settings}"),
    )?;
    let output = Command::new(target().join("release/wharf-sanity"))
        .arg("--config")
        .arg(&config)
        .args(["--node", "m1", "--connect", lab::LOGIN_HOST])
        .args(["--image", "localhost/wharf/base:1", "--ssh"])
        .output()?;
    let said = String::from_utf8(output.stdout)? + &String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success() && said.contains(" 0 failed"),
        "{said}"
    );
    println!("{said}");
    Ok(())
}

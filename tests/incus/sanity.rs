//! The sanity suite for drivers.

use crate::context::{Context, IMAGE};
use anyhow::{Result, ensure};
use std::process::Command;
use wharf_testkit::workspace::target;

pub fn suite(context: &Context) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let config = dir.path().join("wharf.toml");
    // No other test has the third member: a look of its server fills the engine's cache of metrics.
    let settings = context.settings(&[2, 1]);
    std::fs::write(
        &config,
        format!("listen = \"127.0.0.1:0\"\ndata_dir = \"data\"\n{settings}"),
    )?;
    let member = context.member(2);
    let output = Command::new(target().join("release/wharf-sanity"))
        .arg("--config")
        .arg(&config)
        .args(["--node", &member.name, "--connect", &member.address])
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

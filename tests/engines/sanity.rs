//! The sanity suite for drivers.

use crate::lab::IMAGE;
use anyhow::{Result, ensure};
use wharf_tests::proof::prove;

/// Checks the driver of a node of these settings, whose published ports are at `host`.
pub fn suite(driver: &str, settings: &str, node: &str, host: &str) -> Result<()> {
    let arguments = ["--connect", host, "--image", IMAGE, "--ssh"];
    let (ok, said) = prove(driver, node, settings, &arguments)?;
    ensure!(ok && said.contains(" 0 failed"), "{said}");
    println!("{said}");
    Ok(())
}

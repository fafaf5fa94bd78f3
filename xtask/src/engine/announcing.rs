//! `net.ipv4.conf.all.arp_notify`: a bridge whose hardware address changes tells its neighbours.
//!
//! Bridges of netavark before 1.9 have the lowest address of their ports, so that it changes as
//! instances come and go; without being told, the others would answer to the old one for a while.

use crate::process::{command, output};
use anyhow::Result;
use std::fs::{self, File};
use std::path::Path;

const SYSCTL: &str = "/proc/sys/net/ipv4/conf/all/arp_notify";
/// There while it is on only because of us.
const MARK: &str = "/run/wharf-arp-notify-was-off";

/// Switches it on.
pub(super) fn switch_on() -> Result<()> {
    if fs::read_to_string(SYSCTL)?.trim() == "0" {
        File::create(MARK)?;
        fs::write(SYSCTL, "1")?;
    }
    Ok(())
}

/// Puts it back when the last rules of ours are gone, whose tables begin with `prefix`.
pub(super) fn restore(prefix: &str) -> Result<()> {
    let tables = output(command("nft").args(["list", "tables", "inet"]))?;
    if Path::new(MARK).exists() && !tables.contains(&format!(" {prefix}")) {
        fs::write(SYSCTL, "0")?;
        fs::remove_file(MARK)?;
    }
    Ok(())
}

//! `net.ipv4.ip_forward`: an engine switches it on; the last one to leave puts it back.

use anyhow::Result;
use std::fs::{self, File};
use std::path::Path;

const SYSCTL: &str = "/proc/sys/net/ipv4/ip_forward";
/// There while the machine forwards only because of us.
const MARK: &str = "/run/wharf-ip-forward-was-off";

/// Switches forwarding on; whether it was off before.
pub(super) fn switch_on() -> Result<bool> {
    if fs::read_to_string(SYSCTL)?.trim() == "0" {
        File::create(MARK)?;
        fs::write(SYSCTL, "1")?;
    }
    Ok(Path::new(MARK).exists())
}

/// Puts it back, unless something else needs it by now.
pub(super) fn restore() -> Result<()> {
    if Path::new(MARK).exists() && !another_dockerd() {
        fs::write(SYSCTL, "0")?;
        fs::remove_file(MARK)?;
    }
    Ok(())
}

fn another_dockerd() -> bool {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| fs::read_to_string(entry.path().join("comm")).ok())
        .any(|name| name.trim() == "dockerd")
}

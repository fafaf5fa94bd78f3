//! How a private dockerd is started.

use super::place::Place;
use super::storage::Storage;
use super::userns;
use crate::packages::Need;
use crate::process::command;
use anyhow::Result;
use serde_json::json;
use std::fs;
use std::process::Command;

/// What it needs from the distribution.
pub(super) const NEEDS: [Need; 2] = [
    Need {
        program: "dockerd",
        package: "docker.io",
        why: "the engine that runs instances",
    },
    Need {
        program: "iptables",
        package: "iptables",
        why: "dockerd sets up name resolution with it",
    },
];

/// The command, with its configuration written. No dockerd of this place may be running.
pub(super) fn start(place: &Place, storage: Storage) -> Result<Command> {
    // dockerd refuses to start while the process in its pid file lives: so it has a file of its
    // own, and that of a killed one, whose number may be another's by now, is removed.
    let pidfile = place.run.join("dockerd.pid");
    let _ = fs::remove_file(&pidfile);
    let driver = match storage {
        Storage::Btrfs => "btrfs",
        Storage::Directory => "overlay2",
    };
    let config = json!({
        "data-root": place.data().join("docker"),
        "exec-root": place.exec_root(),
        "pidfile": pidfile,
        "hosts": [format!("unix://{}", place.socket().display())],
        "group": "root",
        "storage-driver": driver,
        "userns-remap": userns::DOCKERD.name,
        "live-restore": true,
        "bridge": "none",
        // Ours to do (see `rules`): two dockerds that both manage iptables break each other.
        "iptables": false,
        "ip6tables": false,
    });
    let file = place.run.join("dockerd.json");
    fs::write(&file, config.to_string())?;
    let mut dockerd = command("dockerd");
    dockerd.arg("--config-file").arg(file);
    Ok(dockerd)
}

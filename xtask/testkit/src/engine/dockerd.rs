//! The command of a private dockerd.

use super::docker::TlsListener;
use super::layout::Layout;
use super::seccomp;
use super::storage::Storage;
use super::userns;
use crate::packages::Need;
use crate::process::command;
use anyhow::Result;
use serde_json::json;
use std::fs;
use std::process::Command;

/// The programs that dockerd needs.
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

/// Writes the configuration, and returns the command. No dockerd of this layout may be running.
pub(super) fn start(
    layout: &Layout,
    storage: Storage,
    tls: Option<&TlsListener>,
) -> Result<Command> {
    // dockerd refuses to start while the process in its pid file is alive. The file of a killed dockerd
    // is removed, because its number may have been reused.
    let pidfile = layout.run.join("dockerd.pid");
    let _ = fs::remove_file(&pidfile);
    let driver = match storage {
        Storage::Btrfs(_) => "btrfs",
        Storage::Directory => "overlay2",
    };
    let mut hosts = vec![format!("unix://{}", layout.socket().display())];
    hosts.extend(tls.map(|tls| format!("tcp://127.0.0.1:{}", tls.port)));
    let mut config = json!({
        "data-root": layout.data().join("docker"),
        "exec-root": layout.exec_root(),
        "pidfile": pidfile,
        "hosts": hosts,
        "group": "root",
        "storage-driver": driver,
        "userns-remap": userns::DOCKERD.name,
        "live-restore": true,
        "bridge": "none",
        // `rules` does this: two dockerds that both manage iptables break each other.
        "iptables": false,
        "ip6tables": false,
    });
    if let (Storage::Btrfs(_), Some(keys)) = (storage, config.as_object_mut()) {
        let profile = layout.run.join("seccomp.json");
        fs::write(&profile, seccomp::profile()?.to_string())?;
        keys.insert("seccomp-profile".to_owned(), json!(profile));
    }
    let file = layout.run.join("dockerd.json");
    fs::write(&file, config.to_string())?;
    let mut dockerd = command("dockerd");
    dockerd.arg("--config-file").arg(file);
    if let Some(TlsListener { ca, cert, key, .. }) = tls {
        dockerd.arg("--tlsverify");
        dockerd.arg("--tlscacert").arg(ca);
        dockerd.arg("--tlscert").arg(cert);
        dockerd.arg("--tlskey").arg(key);
    }
    Ok(dockerd)
}

//! The command of a private Podman: `podman system service` in its own mount namespace, with its own
//! configuration, storage, locks and state.

pub(super) mod jail;
pub(super) mod netavark;
mod release;

pub use release::PODMAN;

use super::kind::Kind;
use super::layout::Layout;
use super::storage::Storage;
use super::userns;
use crate::packages::Need;
use anyhow::Result;
use netavark::Networks;
use release::Release;
use rustix::process::{Resource, getrlimit};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The programs that Podman needs.
pub(super) const NEEDS: [Need; 2] = [
    Need {
        program: "nsenter",
        package: "util-linux",
        why: "gives the engine a mount namespace",
    },
    Need {
        program: "iptables",
        package: "iptables",
        why: "Podman publishes ports with it",
    },
];

/// The most open files or processes, even if the machine allows more.
const MOST: u64 = 1 << 20;

/// Writes the configuration, makes the namespace, and returns the command.
pub(super) fn start(kind: Kind, layout: &Layout, storage: Storage) -> Result<Command> {
    let release = Release::of(kind)?;
    fs::create_dir_all(layout.run.join("tmp"))?;
    // A Podman that is killed leaves its copies of images, up to gigabytes.
    let copies = layout.data().join("podman/copies");
    let _ = fs::remove_dir_all(&copies);
    fs::create_dir_all(&copies)?;
    fs::write(
        layout.run.join("containers.conf"),
        containers_conf(kind, layout),
    )?;
    fs::write(
        layout.run.join("storage.conf"),
        storage_conf(layout, storage),
    )?;
    fs::write(layout.run.join("registries.conf"), "")?;
    // Podman does not listen on an existing socket.
    let _ = fs::remove_file(layout.socket());
    jail::make(layout, release.root())?;
    let mut podman = jail::command_in(layout, "podman");
    podman
        .args(["--log-level=info", "system", "service", "--time=0"])
        .arg(format!("unix://{}", layout.socket().display()))
        .env("TMPDIR", copies)
        .env("CONTAINERS_CONF", layout.run.join("containers.conf"))
        .env("CONTAINERS_STORAGE_CONF", layout.run.join("storage.conf"))
        .env(
            "CONTAINERS_REGISTRIES_CONF",
            layout.run.join("registries.conf"),
        );
    Ok(podman)
}

/// The networks of this Podman, even while it does not run.
pub(super) fn networks(layout: &Layout) -> Networks {
    Networks::read(&networks_dir(layout))
}

fn networks_dir(layout: &Layout) -> PathBuf {
    layout.data().join("podman/networks")
}

/// Installs Podman, or makes the root file system that contains it.
pub(super) fn install(kind: Kind) -> Result<()> {
    Release::of(kind)?.install()
}

fn containers_conf(kind: Kind, layout: &Layout) -> String {
    let (run, data) = (&layout.run, layout.data().join("podman"));
    let at = |path: &Path| format!("{:?}", path.to_string_lossy());
    // Podman may not set limits above its own on every machine.
    format!(
        "[containers]\n\
         default_ulimits = [\"nofile={files}:{files}\", \"nproc={processes}:{processes}\"]\n\
         http_proxy = false\n\
         [engine]\n\
         runtime = \"runc\"\n\
         cgroup_manager = \"cgroupfs\"\n\
         events_logger = \"file\"\n\
         {devices}\
         tmp_dir = {tmp}\n\
         static_dir = {fixed}\n\
         volume_path = {volumes}\n\
         [network]\n\
         network_backend = \"netavark\"\n\
         network_config_dir = {networks}\n",
        files = own_limit(Resource::Nofile),
        processes = own_limit(Resource::Nproc).min(most_processes()),
        // Podman 4.3 has no such setting; it also reads `/run/cdi`.
        devices = match kind {
            Kind::Podman5 => format!("cdi_spec_dirs = [{}]\n", at(&run.join("cdi"))),
            Kind::Dockerd | Kind::Podman4 => String::new(),
        },
        tmp = at(&run.join("tmp")),
        fixed = at(&data.join("static")),
        volumes = at(&data.join("volumes")),
        networks = at(&networks_dir(layout)),
    )
}

fn storage_conf(layout: &Layout, storage: Storage) -> String {
    let driver = match storage {
        Storage::Btrfs(_) => "btrfs",
        Storage::Directory => "overlay",
    };
    format!(
        "[storage]\n\
         driver = \"{driver}\"\n\
         graphroot = {:?}\n\
         runroot = {:?}\n\
         [storage.options]\n\
         root-auto-userns-user = \"{}\"\n\
         auto-userns-min-size = {}\n\
         auto-userns-max-size = {}\n",
        layout.data().join("podman/graph").to_string_lossy(),
        layout.exec_root().to_string_lossy(),
        userns::PODMAN.name,
        userns::WHOLE_SYSTEM,
        userns::WHOLE_SYSTEM,
    )
}

/// Podman lowers its own limit to this.
fn most_processes() -> u64 {
    let text = fs::read_to_string("/proc/sys/kernel/pid_max").unwrap_or_default();
    text.trim().parse().unwrap_or(MOST)
}

fn own_limit(resource: Resource) -> u64 {
    getrlimit(resource).maximum.unwrap_or(MOST).min(MOST)
}

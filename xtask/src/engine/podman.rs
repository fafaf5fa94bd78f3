//! How a private Podman is started: `podman system service` in a mount namespace of its own, with
//! configuration, storage, locks and state apart from any other Podman's.

pub(super) mod jail;
pub(super) mod netavark;
mod release;

pub use release::PODMAN;

use super::kind::Kind;
use super::place::Place;
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

/// What every Podman needs from the machine.
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

/// No need for more open files or processes than this, however many the machine allows.
const MOST: u64 = 1 << 20;

/// The command, with its configuration written and its namespace made.
pub(super) fn start(kind: Kind, place: &Place, storage: Storage) -> Result<Command> {
    let release = Release::of(kind)?;
    fs::create_dir_all(place.run.join("tmp"))?;
    fs::write(
        place.run.join("containers.conf"),
        containers_conf(kind, place),
    )?;
    fs::write(place.run.join("storage.conf"), storage_conf(place, storage))?;
    fs::write(place.run.join("registries.conf"), "")?;
    // It would not listen where a killed one has left its socket.
    let _ = fs::remove_file(place.socket());
    jail::make(place, release.root())?;
    let mut podman = jail::command_in(place, "podman");
    podman
        .args(["--log-level=info", "system", "service", "--time=0"])
        .arg(format!("unix://{}", place.socket().display()))
        .env("CONTAINERS_CONF", place.run.join("containers.conf"))
        .env("CONTAINERS_STORAGE_CONF", place.run.join("storage.conf"))
        .env(
            "CONTAINERS_REGISTRIES_CONF",
            place.run.join("registries.conf"),
        );
    Ok(podman)
}

/// The networks that it knows, also when it does not run.
pub(super) fn networks(place: &Place) -> Networks {
    Networks::read(&networks_dir(place))
}

fn networks_dir(place: &Place) -> PathBuf {
    place.data().join("podman/networks")
}

/// Installs it, or makes the root file system it is in.
pub(super) fn install(kind: Kind) -> Result<()> {
    Release::of(kind)?.install()
}

fn containers_conf(kind: Kind, place: &Place) -> String {
    let (run, data) = (&place.run, place.data().join("podman"));
    let at = |path: &Path| format!("{:?}", path.to_string_lossy());
    // Limits above its own are not Podman's to give everywhere.
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
        // Podman 4.3 knows no such setting; it looks in `/run/cdi` as well.
        devices = match kind {
            Kind::Podman5 => format!("cdi_spec_dirs = [{}]\n", at(&run.join("cdi"))),
            Kind::Dockerd | Kind::Podman4 => String::new(),
        },
        tmp = at(&run.join("tmp")),
        fixed = at(&data.join("static")),
        volumes = at(&data.join("volumes")),
        networks = at(&networks_dir(place)),
    )
}

fn storage_conf(place: &Place, storage: Storage) -> String {
    let driver = match storage {
        Storage::Btrfs => "btrfs",
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
        place.data().join("podman/graph").to_string_lossy(),
        place.exec_root().to_string_lossy(),
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

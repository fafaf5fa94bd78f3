//! A private Incus with one member, as a node.

use super::config::Tls;
use super::machine::{self, Room};
use super::nodes::{Node, Requirements};
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::Path;
use std::process::Command;
use wharf_testkit::engine;
use wharf_testkit::incus::{self, Cluster, ClusterOptions, GATEWAY, LAN, Project};
use wharf_testkit::packages::{self, Need};
use wharf_testkit::process::{is_root, output};
use wharf_testkit::progress;

/// The project of instances and images.
const PROJECT: &str = "wharf";
/// The least that Incus takes; a cluster of one has no other members to wait for.
const OFFLINE_AFTER_S: u8 = 11;
/// The program that makes Wharf's certificate.
const OPENSSL: Need = Need {
    program: "openssl",
    package: "openssl",
    why: "makes the certificate with which Wharf reaches Incus",
};

/// Fails unless this machine can run a private Incus.
pub(super) fn check(vms: bool) -> Result<()> {
    ensure!(
        !vms,
        "--vms needs a dockerd: Wharf places no virtual machines on Incus. Leave out --vms or --incus"
    );
    ensure!(
        is_root(),
        "--incus needs root: sudo -E env \"PATH=$PATH\" cargo xtask up --incus"
    );
    ensure!(
        incus::can_install(),
        "--incus needs Debian 12 or 13, which have a package of Incus, or another system with Incus 6.0 or \
         newer in /usr/libexec/incus"
    );
    ensure!(
        engine::kernel_has_btrfs(),
        "--incus needs a kernel with btrfs, which holds instances to their disk sizes"
    );
    Ok(())
}

/// Starts Incus with its storage in `dir`, and makes a project and a node of it.
pub(super) fn start(
    dir: &Path,
    disk_gib: u64,
    requirements: &Requirements,
) -> Result<(Cluster, Project, Node)> {
    packages::ensure(&[OPENSSL])?;
    incus::install()?;
    let cluster = progress::timed("Starting a private Incus", || {
        Cluster::start(&ClusterOptions {
            dir: dir.join("engine"),
            members: 1,
            disk_gib,
            offline_after_s: OFFLINE_AFTER_S,
            disposable: requirements.check,
            outside: Some(requirements.allowed.clone()),
        })
    })?;
    let member = cluster.first()?;
    progress::note(&format!(
        "Incus listens on {}. Its storage is btrfs in a sparse file of {disk_gib} GiB.",
        member.endpoint()
    ));
    let tls = Tls {
        cert: dir.join("incus-client.crt"),
        key: dir.join("incus-client.key"),
        server_cert: dir.join("incus-server.crt"),
    };
    make_certificate(&tls)?;
    fs::write(&tls.server_cert, cluster.certificate()?)?;
    let project = Project::make(&cluster, PROJECT, &fs::read_to_string(&tls.cert)?)?;
    let address = member.address();
    let node = Node {
        name: "local".to_owned(),
        driver: "incus",
        endpoint: member.endpoint(),
        tls: Some(tls),
        room: Room::of_machine(disk_gib.saturating_sub(machine::IMAGES_GIB)),
        lan_cidr: LAN.to_owned(),
        public_ipv4: None,
        settings: format!(
            "member = \"{}\", project = \"{PROJECT}\", gateway = \"{GATEWAY}\", publish_address = \
             \"{address}\"",
            member.name()
        ),
        host: address,
    };
    Ok((cluster, project, node))
}

/// Makes Wharf's certificate, unless an earlier run has made it.
fn make_certificate(tls: &Tls) -> Result<()> {
    if tls.cert.is_file() && tls.key.is_file() {
        return Ok(());
    }
    // OpenSSL keeps the permissions of an existing file, and gives a new key to its owner alone.
    for file in [&tls.cert, &tls.key] {
        if let Err(error) = fs::remove_file(file)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            bail!("{}: {error}", file.display());
        }
    }
    let mut openssl = Command::new(OPENSSL.program);
    openssl
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt"])
        .args(["ec_paramgen_curve:secp384r1", "-days", "3650", "-nodes"])
        .args(["-subj", "/CN=wharf", "-keyout"])
        .arg(&tls.key)
        .arg("-out")
        .arg(&tls.cert);
    output(&mut openssl)
        .map(drop)
        .context("no certificate for Incus")
}

//! The configuration file that `up` writes.

use super::machine::Listen;
use super::nodes::Node;
use anyhow::{Result, bail};
use std::fmt::Write as _;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use wharf_subnets::Reservation;
use wharf_testkit::engine::Allowed;

/// The file's name.
pub(super) const FILE: &str = "wharf.toml";
/// The directory of the data, beside the file.
pub(super) const DATA: &str = "data";
/// The login user of instances.
pub(super) const LOGIN_USER: &str = "user";
/// The host of logins and pages with an engine that publishes ports on this machine's addresses.
pub(super) const HOST: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// The domain of pages. Browsers reach this machine by all names below `localhost`, and treat them as secure.
pub(super) const PAGES: &str = "apps.localhost";

/// vCPUs of instances for each one of the machine: on a trial, most instances are idle.
const CPU_OVERCOMMIT: u32 = 4;

/// The certificates of a node.
#[derive(Clone)]
pub(super) struct Tls {
    /// Wharf's certificate.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The engine's certificate.
    pub server_cert: PathBuf,
}

/// Port ranges of the nodes, below the kernel's ephemeral ports.
#[derive(Clone, Copy)]
pub(super) struct Ports {
    ssh: (u16, u16),
    web: (u16, u16),
}

impl Ports {
    const USUAL: Self = Self {
        ssh: (20_000, 28_999),
        web: (30_000, 31_799),
    };
    /// For further runs beside a usual one.
    const FURTHER: [Self; 3] = [
        Self::below_usual(10_000),
        Self::below_usual(13_000),
        Self::below_usual(16_000),
    ];
    /// Other ports, so that a check does not disturb a run.
    const CHECK: Self = Self {
        ssh: (29_000, 29_099),
        web: (31_800, 31_899),
    };

    const fn below_usual(from: u16) -> Self {
        Self {
            ssh: (from, from + 1999),
            web: (from + 2000, from + 2999),
        }
    }

    /// Reserves ports that no other run has, those of an earlier run first: its instances have them.
    pub fn reserve(check: bool, earlier: &Earlier) -> Result<(Self, Reservation)> {
        let first = if check { Self::CHECK } else { Self::USUAL };
        let mut all: Vec<_> = [first].into_iter().chain(Self::FURTHER).collect();
        let had = earlier.first_port();
        all.sort_by_key(|ports| Some(ports.ssh.0) != had);
        for ports in all {
            if let Some(reserved) = Reservation::of_ports(&ports.ssh.0.to_string())? {
                return Ok((ports, reserved));
            }
        }
        bail!("too many runs of `cargo xtask up` on this machine: each needs ports of its own")
    }
}

/// The file's text.
pub(super) fn text(data_dir: &Path, ports: Ports, listen: Listen, nodes: &[Node]) -> String {
    let host = nodes.first().map_or(HOST, |node| node.host);
    let Listen { rest, pages } = listen;
    let mut text = format!(
        "# Written by `cargo xtask up` at each start. To change it, copy it and run\n\
         # `wharf serve --config COPY`.\n\
         listen = \"{rest}\"\n\
         data_dir = \"{}\"\n\
         ssh_host = \"{host}\"\n\
         login_user = \"{LOGIN_USER}\"\n\n\
         [ssh_ports]\nfrom = {}\nto = {}\n\n\
         [web]\nhost = \"{host}\"\nfrom = {}\nto = {}\n\n\
         [pages]\ndomain = \"{PAGES}\"\nlisten = \"{pages}\"\n",
        data_dir.display(),
        ports.ssh.0,
        ports.ssh.1,
        ports.web.0,
        ports.web.1,
    );
    for node in nodes {
        let _ = write!(
            text,
            "\n[[node]]\nname = \"{}\"\ndriver = \"{}\"\nendpoint = \"{}\"\n\
             capacity = {{ n_vcpus = {}, mem_gib = {}, disk_size_gib = {} }}\n\
             cpu_overcommit = {CPU_OVERCOMMIT}\n\
             lan_cidr = \"{}\"\n",
            node.name,
            node.driver,
            node.endpoint,
            node.room.n_vcpus,
            node.room.mem_gib,
            node.room.disk_gib,
            node.lan_cidr,
        );
        if let Some(public) = &node.public_ipv4 {
            let _ = writeln!(text, "public_ipv4 = [\"{public}\"]");
        }
        if !node.settings.is_empty() {
            let _ = writeln!(text, "settings = {{ {} }}", node.settings);
        }
        if let Some(Tls {
            cert,
            key,
            server_cert,
        }) = &node.tls
        {
            let _ = writeln!(
                text,
                "tls = {{ cert = \"{}\", key = \"{}\", server_cert = \"{}\" }}",
                cert.display(),
                key.display(),
                server_cert.display()
            );
        }
    }
    text
}

/// The file of an earlier run. Its instances have addresses in the networks of its nodes.
pub(super) struct Earlier(String);

impl Earlier {
    /// Reads the file in this directory; empty if there was no earlier run.
    pub fn read(dir: &Path) -> Self {
        Self(fs::read_to_string(dir.join(FILE)).unwrap_or_default())
    }

    /// A node's `lan_cidr`.
    pub fn lan_cidr(&self, node: &str) -> Option<String> {
        self.setting(node, "lan_cidr")
    }

    /// A node's `public_ipv4`.
    pub fn public_ipv4(&self, node: &str) -> Option<String> {
        self.setting(node, "public_ipv4")
    }

    /// The first SSH port.
    fn first_port(&self) -> Option<u16> {
        let (_, ports) = self.0.split_once("[ssh_ports]\nfrom = ")?;
        ports.lines().next()?.parse().ok()
    }

    fn setting(&self, node: &str, key: &str) -> Option<String> {
        let name = format!("name = \"{node}\"");
        let mut tables = self.0.split("[[node]]").skip(1);
        let table = tables.find(|table| table.lines().any(|line| line == name))?;
        let mut lines = table.lines();
        let value = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "))?;
        Some(value.trim_matches(['[', '"', ']']).to_owned())
    }
}

/// The settings of a node with Docker's driver. Published ports are for this machine only; an installation
/// would leave that out.
pub(super) fn docker_settings(allowed: &Allowed) -> String {
    let dns = if allowed.name_servers_are_link_local() {
        ", dns = [\"1.1.1.1\", \"8.8.8.8\"]"
    } else {
        ""
    };
    format!("publish_address = \"{HOST}\"{dns}")
}

#[cfg(test)]
mod tests {
    use super::super::machine::{Listen, Room};
    use super::{Allowed, Earlier, FILE, HOST, Node, Ports, docker_settings, text};
    use std::fs;

    fn node(name: &str, lan_cidr: &str, public_ipv4: Option<&str>) -> Node {
        Node {
            name: name.to_owned(),
            driver: "docker",
            endpoint: "unix:///run/x.sock".to_owned(),
            room: Room {
                n_vcpus: 1,
                mem_gib: 1,
                disk_gib: 24,
            },
            lan_cidr: lan_cidr.to_owned(),
            public_ipv4: public_ipv4.map(str::to_owned),
            settings: docker_settings(&Allowed::default()),
            tls: None,
            host: HOST,
        }
    }

    #[test]
    fn the_next_run_finds_the_networks_of_each_node() {
        let dir = tempfile::tempdir().unwrap();
        let none = Earlier::read(dir.path());
        assert_eq!(none.lan_cidr("node1"), None);
        let nodes = [
            node("node1", "10.81.0.0/16", None),
            node("node2", "10.82.0.0/16", Some("198.18.82.0/26")),
        ];
        let written = text(dir.path(), Ports::USUAL, Listen::new(true), &nodes);
        fs::write(dir.path().join(FILE), written).unwrap();
        let earlier = Earlier::read(dir.path());
        assert_eq!(earlier.lan_cidr("node1").unwrap(), "10.81.0.0/16");
        assert_eq!(earlier.public_ipv4("node1"), None);
        assert_eq!(earlier.lan_cidr("node2").unwrap(), "10.82.0.0/16");
        assert_eq!(earlier.public_ipv4("node2").unwrap(), "198.18.82.0/26");
        assert_eq!(earlier.lan_cidr("node"), None);
        assert_eq!(earlier.first_port(), Some(20_000));
    }
}

//! The configuration that `up` writes.

use super::machine;
use super::nodes::Node;
use std::fmt::Write as _;
use std::path::Path;

/// The login user of instances.
pub(super) const LOGIN_USER: &str = "user";
/// The login host, and where pages are.
pub(super) const HOST: &str = "127.0.0.1";

/// Ports of the node, all below the kernel's ephemeral ones.
#[derive(Clone, Copy)]
pub(super) struct Ports {
    ssh: (u16, u16),
    web: (u16, u16),
}

impl Ports {
    pub const USUAL: Self = Self {
        ssh: (20_000, 28_999),
        web: (30_000, 31_799),
    };
    /// Apart, so that a check disturbs nothing that runs.
    pub const CHECK: Self = Self {
        ssh: (29_000, 29_099),
        web: (31_800, 31_899),
    };
}

/// The file's text.
pub(super) fn text(data_dir: &Path, ports: Ports, listen: &str, nodes: &[Node]) -> String {
    let mut text = format!(
        "# Written by `cargo xtask up`, anew each time. To change it, copy it and run\n\
         # `wharf serve --config COPY`.\n\
         listen = \"{listen}\"\n\
         data_dir = \"{}\"\n\
         ssh_host = \"{HOST}\"\n\
         login_user = \"{LOGIN_USER}\"\n\n\
         [ssh_ports]\nfrom = {}\nto = {}\n\n\
         [web]\nhost = \"{HOST}\"\nfrom = {}\nto = {}\n",
        data_dir.display(),
        ports.ssh.0,
        ports.ssh.1,
        ports.web.0,
        ports.web.1,
    );
    let share = nodes.len().max(1) as u64;
    for node in nodes {
        let _ = write!(
            text,
            "\n[[node]]\nname = \"{}\"\ndriver = \"{}\"\nendpoint = \"{}\"\n\
             capacity = {{ n_vcpus = {}, mem_gib = {}, disk_size_gib = {} }}\n\
             lan_cidr = \"{}\"\n",
            node.name,
            node.driver,
            node.endpoint,
            (machine::cores() / share).max(1),
            (machine::ram_gib() / share).max(1),
            node.disk_gib / share,
            node.lan_cidr,
        );
        if let Some(public) = &node.public_ipv4 {
            let _ = writeln!(text, "public_ipv4 = [\"{public}\"]");
        }
        if node.driver == "docker" {
            // Only this machine reaches the published ports; a server would leave this out.
            let _ = writeln!(
                text,
                "settings = {{ publish_address = \"127.0.0.1\"{} }}",
                dns()
            );
        }
    }
    text
}

fn dns() -> &'static str {
    if machine::name_servers_are_link_local() {
        ", dns = [\"1.1.1.1\", \"8.8.8.8\"]"
    } else {
        ""
    }
}

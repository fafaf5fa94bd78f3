//! The operator's part of a node: the bridge, the rules of its traffic, a project, and a certificate that is
//! restricted to the project.

use super::cluster::Cluster;
use anyhow::{Context, Result};
use serde_json::json;

/// The storage pool.
pub const POOL: &str = "default";
/// The bridge of the instances.
pub const NETWORK: &str = "wharf0";
/// Its address on every member.
pub const GATEWAY: &str = "10.79.0.1";
/// The addresses of the instances.
pub const LAN: &str = "10.79.0.0/16";
/// The rules of the bridge.
const RULES: &str = "wharf";
/// Networks of machines: instances reach only public addresses.
const MACHINES: &str =
    "10.0.0.0/8,100.64.0.0/10,169.254.0.0/16,172.16.0.0/12,192.168.0.0/16,198.18.0.0/15";

/// A project.
#[derive(Debug, Clone)]
pub struct Project {
    /// The name.
    pub name: String,
}

impl Project {
    /// Makes the bridge, unless the cluster has it, and a project of this name, which a client with this
    /// certificate may use. The certificate is PEM.
    pub fn make(cluster: &Cluster, name: &str, certificate: &str) -> Result<Self> {
        let first = cluster.members().first().context("no member")?;
        make_network(cluster)?;
        let config = json!({
            "features.images": "true",
            "features.profiles": "true",
            "features.storage.volumes": "true",
            "restricted": "true",
            "restricted.cluster.target": "allow",
            "restricted.devices.disk": "managed",
            "restricted.devices.nic": "managed",
            "restricted.devices.proxy": "allow",
            "restricted.devices.gpu": "allow",
            "restricted.networks.access": NETWORK,
        });
        let project = json!({ "name": name, "config": config });
        first.ask("POST", "/1.0/projects", Some(project))?;
        let der: String = certificate
            .lines()
            .filter(|line| !line.starts_with("-----"))
            .collect();
        let client = json!({
            "name": name,
            "type": "client",
            "certificate": der,
            "restricted": true,
            "projects": [name],
        });
        first.ask("POST", "/1.0/certificates", Some(client))?;
        Ok(Self {
            name: name.to_owned(),
        })
    }
}

fn make_network(cluster: &Cluster) -> Result<()> {
    let first = cluster.members().first().context("no member")?;
    let path = format!("/1.0/networks/{NETWORK}");
    if first.ask("GET", &path, None).is_ok() {
        return Ok(());
    }
    let rules = json!({
        "name": RULES,
        "egress": [{ "action": "drop", "state": "enabled", "destination": MACHINES }],
        "ingress": [],
    });
    first.ask("POST", "/1.0/network-acls", Some(rules))?;
    for member in cluster.members() {
        let path = format!("/1.0/networks?target={}", member.name());
        first.ask(
            "POST",
            &path,
            Some(json!({ "name": NETWORK, "type": "bridge" })),
        )?;
    }
    let config = json!({
        "ipv4.address": format!("{GATEWAY}/16"),
        "ipv4.nat": "true",
        "ipv4.dhcp": "false",
        "ipv6.address": "none",
        "security.acls": RULES,
        "security.acls.default.egress.action": "allow",
        "security.acls.default.ingress.action": "allow",
    });
    let network = json!({ "name": NETWORK, "type": "bridge", "config": config });
    first.ask("POST", "/1.0/networks", Some(network)).map(drop)
}

//! The operator's part of a node: the bridge, the rules of its traffic, a project, and a certificate that is
//! restricted to the project.

use super::cluster::Cluster;
use crate::http::HttpClient;
use anyhow::Result;
use serde_json::{Value, json};
use wharf_images::incus::{ask, text};

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
/// The networks of the members and of their instances.
const CLUSTER: &str = "10.79.0.0/16,169.254.0.0/16,198.18.0.0/15";
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
    /// Makes the bridge and a project of this name, which a client with this certificate may use, unless the
    /// cluster has them. The certificate is PEM.
    pub fn make(cluster: &Cluster, name: &str, certificate: &str) -> Result<Self> {
        let first = cluster.first()?;
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
            "restricted.snapshots": "allow",
        });
        let path = format!("/1.0/projects/{name}");
        if let Ok(found) = first.ask("GET", &path, None) {
            // An earlier version made it without this. A change of the configuration replaces all of it.
            let mut config = found.get("config").and_then(Value::as_object).cloned();
            let config = config.get_or_insert_default();
            config.insert("restricted.snapshots".to_owned(), "allow".into());
            let changed = json!({ "config": config });
            first.ask("PATCH", &path, Some(changed))?;
        } else {
            let project = json!({ "name": name, "config": config });
            first.ask("POST", "/1.0/projects", Some(project))?;
        }
        let project = Self {
            name: name.to_owned(),
        };
        let der = base64(certificate);
        let trusted = first.ask("GET", "/1.0/certificates?recursion=1", None)?;
        let mut trusted = trusted.as_array().into_iter().flatten();
        if trusted.any(|client| base64(text(client, "/certificate")) == der) {
            return Ok(project);
        }
        let client = json!({
            "name": name,
            "type": "client",
            "certificate": der,
            "restricted": true,
            "projects": [name],
        });
        first.ask("POST", "/1.0/certificates", Some(client))?;
        Ok(project)
    }

    /// The names of the project's instances.
    pub fn instances(&self, client: &HttpClient) -> Result<Vec<String>> {
        let path = format!("/1.0/instances?project={}", self.name);
        let list = ask(client, "GET", &path, None)?;
        let paths = list.as_array().into_iter().flatten();
        let names = paths.filter_map(|path| path.as_str()?.split('?').next()?.rsplit('/').next());
        Ok(names.map(str::to_owned).collect())
    }
}

/// The content of a certificate in PEM.
fn base64(pem: &str) -> String {
    let lines = pem.lines();
    lines.filter(|line| !line.starts_with("-----")).collect()
}

fn make_network(cluster: &Cluster) -> Result<()> {
    let first = cluster.first()?;
    let path = format!("/1.0/networks/{NETWORK}");
    let forwarders = cluster.outside().map(|allowed| {
        let servers = allowed.reachable_name_servers().into_iter();
        let lines: String = servers.map(|server| format!("server={server}\n")).collect();
        format!("no-resolv\n{lines}")
    });
    let forwarders = forwarders.unwrap_or_default();
    if first.ask("GET", &path, None).is_ok() {
        // The machine may have other name servers than in an earlier run.
        let config = json!({ "config": { "raw.dnsmasq": forwarders } });
        return first.ask("PATCH", &path, Some(config)).map(drop);
    }
    // The node's rules allow what lies outside.
    let dropped = match cluster.outside() {
        Some(_) => CLUSTER,
        None => MACHINES,
    };
    let rules = json!({
        "name": RULES,
        "egress": [{ "action": "drop", "state": "enabled", "destination": dropped }],
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
        "raw.dnsmasq": forwarders,
        "security.acls": RULES,
        "security.acls.default.egress.action": "allow",
        "security.acls.default.ingress.action": "allow",
    });
    let network = json!({ "name": NETWORK, "type": "bridge", "config": config });
    first.ask("POST", "/1.0/networks", Some(network)).map(drop)
}

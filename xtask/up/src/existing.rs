//! An engine that the user runs, as it describes itself.

use super::machine::{self, Room};
use anyhow::{Context, Result};
use serde_json::Value;
use std::path::Path;
use wharf_subnets::{InUse, Ipv4Net};
use wharf_testkit::http::{Endpoint, HttpClient};

/// A running engine.
pub(super) struct Existing {
    pub client: HttpClient,
    pub version: String,
    pub is_podman: bool,
    /// The capacity for instances.
    pub room: Room,
    /// Subnets of the installation's networks.
    pub own: Vec<Ipv4Net>,
    /// Subnets of other networks. The machine has no routes to those of a rootless engine.
    pub others: Vec<InUse>,
}

impl Existing {
    /// Queries an engine, as the installation with this name, if it has one. Where its data directory is not visible, the disk of `dir` is taken for its own.
    pub fn ask(endpoint: &Endpoint, installation: &str, dir: &Path) -> Result<Self> {
        let client = HttpClient::new(endpoint.clone());
        let version = client
            .get("/version")
            .with_context(|| format!("the engine at {endpoint} does not respond"))?;
        let info = client.get("/info")?;
        let (own, others) = subnets(&client.get("/networks")?, installation);
        let text = version.get("Version").and_then(Value::as_str);
        Ok(Self {
            client,
            version: text.unwrap_or("?").to_owned(),
            is_podman: is_podman(&version),
            room: room(&info, dir)?,
            own,
            others,
        })
    }
}

fn is_podman(version: &Value) -> bool {
    let components = version.get("Components").and_then(Value::as_array);
    let mut names = components
        .into_iter()
        .flatten()
        .filter_map(|component| component.get("Name")?.as_str());
    names.any(|name| name.contains("Podman"))
}

/// An engine may be in a virtual machine, which is smaller than this one.
fn room(info: &Value, dir: &Path) -> Result<Room> {
    let number = |key| info.get(key).and_then(Value::as_u64).filter(|n| *n > 0);
    let data = info.get("DockerRootDir").and_then(Value::as_str);
    let data = data.map(Path::new).filter(|data| data.is_dir());
    let machine = Room::of_machine(machine::disk_gib(data.unwrap_or(dir))?);
    Ok(match (number("NCPU"), number("MemTotal")) {
        (Some(n_vcpus), Some(ram)) => Room::of(n_vcpus, ram, machine.disk_gib),
        _ => machine,
    })
}

/// The subnets of an installation's networks, and those of others.
pub(super) fn subnets(networks: &Value, installation: &str) -> (Vec<Ipv4Net>, Vec<InUse>) {
    let (mut own, mut others) = (Vec::new(), Vec::new());
    for network in networks.as_array().into_iter().flatten() {
        let text = |pointer: &str| network.pointer(pointer).and_then(Value::as_str);
        let is_own =
            text("/Labels/io.wharf.installation").is_some_and(|label| label == installation);
        let configs = network.pointer("/IPAM/Config").and_then(Value::as_array);
        let subnets = configs
            .into_iter()
            .flatten()
            .filter_map(|config| config.get("Subnet"));
        let subnets = subnets.filter_map(|subnet| subnet.as_str()?.parse().ok());
        if is_own {
            own.extend(subnets)
        } else {
            others.extend(subnets.map(|subnet| InUse {
                subnet,
                owner: format!("the engine's network {}", text("/Name").unwrap_or("?")),
            }))
        }
    }
    (own, others)
}

#[cfg(test)]
mod tests {
    use super::{is_podman, room, subnets};
    use serde_json::json;
    use std::path::Path;

    #[test]
    fn an_engine_says_what_it_is() {
        let podman = json!({ "Components": [{ "Name": "Podman Engine", "Version": "4.3.1" }] });
        assert!(is_podman(&podman));
        let docker = json!({ "Components": [{ "Name": "Engine" }, { "Name": "containerd" }] });
        assert!(!is_podman(&docker));
        assert!(!is_podman(&json!({})));
        let networks = json!([
            { "Name": "a", "IPAM": { "Config": [{ "Subnet": "10.1.0.0/16" }] } },
            {
                "Name": "b", "Labels": { "io.wharf.installation": "us" },
                "IPAM": { "Config": [{ "Subnet": "10.2.0.0/16" }] },
            },
            { "IPAM": { "Config": null } },
        ]);
        let (own, others) = subnets(&networks, "us");
        assert_eq!(own, ["10.2.0.0/16".parse().unwrap()]);
        assert_eq!(others[0].owner, "the engine's network a");
        assert_eq!(others.len(), 1);
    }

    #[test]
    fn a_node_has_the_engine_s_room_not_the_machine_s() {
        let small = json!({ "NCPU": 1, "MemTotal": 3_u64 << 30, "DockerRootDir": "/no/such" });
        let room = room(&small, Path::new("/")).unwrap();
        assert_eq!((room.n_vcpus, room.mem_gib), (1, 2));
    }
}

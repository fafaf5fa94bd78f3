//! An engine that the user runs, as it describes itself.

use super::machine::{self, Room};
use anyhow::{Context, Result};
use serde_json::Value;
use std::path::Path;
use wharf_testkit::http::{Client, Endpoint};

/// A running engine.
pub(super) struct Existing {
    pub client: Client,
    pub version: String,
    pub is_podman: bool,
    /// The capacity for instances.
    pub room: Room,
    /// Subnets of its networks. The machine has no routes to those of a rootless engine.
    pub subnets: Vec<String>,
}

impl Existing {
    /// Queries an engine. Where its data directory is not visible, the disk of `dir` is taken for its own.
    pub fn ask(endpoint: &Endpoint, dir: &Path) -> Result<Self> {
        let client = Client::new(endpoint.clone());
        let version = client
            .get("/version")
            .with_context(|| format!("the engine at {endpoint} does not respond"))?;
        let info = client.get("/info")?;
        let networks = client.get("/networks")?;
        let text = version.get("Version").and_then(Value::as_str);
        Ok(Self {
            client,
            version: text.unwrap_or("?").to_owned(),
            is_podman: is_podman(&version),
            room: room(&info, dir)?,
            subnets: subnets(&networks),
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

fn subnets(networks: &Value) -> Vec<String> {
    let networks = networks.as_array().into_iter().flatten();
    let configs = networks.filter_map(|network| network.pointer("/IPAM/Config")?.as_array());
    let subnets = configs.flatten().filter_map(|config| config.get("Subnet"));
    subnets
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
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
            { "IPAM": { "Config": [{ "Subnet": "10.1.0.0/16" }] } },
            { "IPAM": { "Config": null } },
        ]);
        assert_eq!(subnets(&networks), ["10.1.0.0/16"]);
    }

    #[test]
    fn a_node_has_the_engine_s_room_not_the_machine_s() {
        let small = json!({ "NCPU": 1, "MemTotal": 3_u64 << 30, "DockerRootDir": "/no/such" });
        let room = room(&small, Path::new("/")).unwrap();
        assert_eq!((room.n_vcpus, room.mem_gib), (1, 2));
    }
}

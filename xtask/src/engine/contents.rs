//! What is in an engine: stopped together, or removed without rest.

use super::kind::Kind;
use crate::http::{Client, Request};
use crate::process::{command, succeeds};
use anyhow::Result;
use serde_json::Value;
use std::time::Duration;

/// Containers worked on at once.
const AT_ONCE: usize = 16;
/// The networks that every engine has; Podman has the last one, and cannot list without it.
const BUILT_IN: [&str; 4] = ["bridge", "host", "none", "podman"];
const NETWORKS: &str = "/networks";
/// The same in Podman's own interface, which names their bridges.
const LIBPOD_NETWORKS: &str = "/v4.0.0/libpod/networks/json";
/// What a container whose data is kept gets to stop by itself, seconds.
pub(super) const GRACE_S: u64 = 8;
/// For one answer of an engine that is still removing others.
const PATIENCE: Duration = Duration::from_secs(60);

/// Stops all running containers; each gets `grace` seconds to do it by itself.
pub(super) fn stop_all(client: &Client, grace: u64) -> Result<()> {
    let running = ids(&client.get("/containers/json")?);
    for_each(&running, |id| {
        let path = format!("/containers/{id}/stop?t={grace}");
        let limit = Duration::from_secs(grace + 20);
        client
            .send(Request::new("POST", &path).timeout(limit))
            .map(drop)
    })
}

/// Removes all containers with their storage, and all networks with their bridges.
pub(super) fn remove_all(client: &Client) -> Result<()> {
    let list = Request::new("GET", "/containers/json?all=true").timeout(PATIENCE);
    let all = serde_json::from_slice(&client.send(list)?.ok()?.body)?;
    for_each(&ids(&all), |id| {
        let path = format!("/containers/{id}?force=true&v=true");
        client
            .send(Request::new("DELETE", &path).timeout(PATIENCE))
            .map(drop)
    })?;
    let mut networks = client.get(NETWORKS)?;
    if let Some(rows) = networks.as_array_mut() {
        rows.retain(|row| !is_built_in(row));
    }
    for_each(&ids(&networks), |id| {
        let path = format!("/networks/{id}");
        client.send(Request::new("DELETE", &path)).map(drop)
    })
}

/// The node's interfaces that are networks of this engine; an engine that ends leaves them.
pub(super) fn bridges(client: &Client, kind: Kind) -> Result<Vec<String>> {
    let path = match kind {
        Kind::Dockerd => NETWORKS,
        Kind::Podman4 | Kind::Podman5 => LIBPOD_NETWORKS,
    };
    let networks = client.get(path)?;
    let rows = networks.as_array().into_iter().flatten();
    let name = |row: &Value| {
        let given = [
            "/Options/com.docker.network.bridge.name",
            "/network_interface",
        ]
        .into_iter()
        .find_map(|pointer| row.pointer(pointer)?.as_str());
        let id = row
            .get("Id")
            .and_then(Value::as_str)
            .and_then(|id| id.get(..12));
        given
            .map(str::to_owned)
            .or_else(|| id.map(|id| format!("br-{id}")))
    };
    Ok(rows
        .filter(|row| !is_built_in(row))
        .filter_map(name)
        .collect())
}

fn is_built_in(row: &Value) -> bool {
    let name = row.get("Name").or_else(|| row.get("name"));
    name.and_then(Value::as_str)
        .is_some_and(|name| BUILT_IN.contains(&name))
}

/// Removes those of `bridges` that are still there. The engine makes them again when it starts.
pub(super) fn remove_bridges(bridges: &[String]) {
    for bridge in bridges {
        succeeds(command("ip").args(["link", "delete", bridge, "type", "bridge"]));
    }
}

fn ids(list: &Value) -> Vec<String> {
    let rows = list.as_array().into_iter().flatten();
    rows.filter_map(|row| row.get("Id")?.as_str())
        .map(str::to_owned)
        .collect()
}

fn for_each(ids: &[String], work: impl Fn(&str) -> Result<()> + Sync) -> Result<()> {
    for chunk in ids.chunks(AT_ONCE) {
        std::thread::scope(|scope| {
            let threads: Vec<_> = chunk.iter().map(|id| scope.spawn(|| work(id))).collect();
            for thread in threads {
                if let Ok(result) = thread.join() {
                    result?;
                }
            }
            anyhow::Ok(())
        })?;
    }
    Ok(())
}

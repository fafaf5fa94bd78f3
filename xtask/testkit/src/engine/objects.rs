//! The containers and networks of an engine, stopped or removed together.

use crate::http::{HttpClient, Request};
use crate::process::{command, succeeds};
use anyhow::Result;
use serde_json::{Value, json};
use std::time::Duration;

/// Concurrent requests.
const CONCURRENCY: usize = 16;
/// The networks that every engine has. The last is Podman's, which cannot list networks without it.
const BUILT_IN: [&str; 4] = ["bridge", "host", "none", "podman"];
const NETWORKS: &str = "/networks";
/// The time for a container to stop by itself, seconds.
pub const GRACE_S: u64 = 8;
/// The timeout of a request while the engine removes other containers.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The containers and networks of an engine, or those with one label.
pub struct Objects {
    client: HttpClient,
    label: Option<String>,
}

impl Objects {
    /// All objects of an engine.
    pub(super) fn all(client: HttpClient) -> Self {
        Self {
            client,
            label: None,
        }
    }

    /// The objects with this label, `KEY=VALUE`.
    pub fn labelled(client: HttpClient, label: String) -> Self {
        Self {
            client,
            label: Some(label),
        }
    }

    /// Stops the running containers; each has `grace` seconds to stop by itself.
    pub fn stop(&self, grace: u64) -> Result<()> {
        let running = ids(&self.list("/containers/json")?);
        for_each(&running, |id| {
            let path = format!("/containers/{id}/stop?t={grace}");
            let limit = Duration::from_secs(grace + 20);
            self.client
                .send(Request::new("POST", &path).timeout(limit))
                .map(drop)
        })
    }

    /// Removes the containers with their storage, and the networks with their bridges.
    pub fn remove(&self) -> Result<()> {
        for_each(&ids(&self.containers()?), |id| {
            let path = format!("/containers/{id}?force=true&v=true");
            self.client
                .send(Request::new("DELETE", &path).timeout(TIMEOUT))
                .map(drop)
        })?;
        for_each(&ids(&self.networks()?), |id| {
            let path = format!("/networks/{id}");
            self.client.send(Request::new("DELETE", &path)).map(drop)
        })
    }

    /// Removes the volumes.
    pub fn remove_volumes(&self) -> Result<()> {
        let volumes = self.list("/volumes")?;
        let rows = volumes
            .get("Volumes")
            .and_then(|v| v.as_array())
            .cloned()
            .unwrap_or_default();
        let names = rows.iter().filter_map(|row| row["Name"].as_str());
        let names: Vec<_> = names.map(str::to_owned).collect();
        for_each(&names, |name| {
            let path = format!("/volumes/{name}");
            self.client.send(Request::new("DELETE", &path)).map(drop)
        })
    }

    /// Whether there is neither a container nor a network.
    pub fn is_empty(&self) -> Result<bool> {
        Ok(ids(&self.containers()?).is_empty() && ids(&self.networks()?).is_empty())
    }

    fn containers(&self) -> Result<Value> {
        self.list("/containers/json?all=true")
    }

    fn networks(&self) -> Result<Value> {
        let mut networks = self.list(NETWORKS)?;
        if let Some(rows) = networks.as_array_mut() {
            rows.retain(|row| !is_built_in(row));
        }
        Ok(networks)
    }

    fn list(&self, path: &str) -> Result<Value> {
        let path = match &self.label {
            Some(label) => {
                let next = if path.contains('?') { '&' } else { '?' };
                format!("{path}{next}filters={}", filters(label))
            }
            None => path.to_owned(),
        };
        let list = Request::new("GET", &path).timeout(TIMEOUT);
        self.client.send(list)?.ok()?.json()
    }
}

/// The filter for a label, percent-encoded for a query.
fn filters(label: &str) -> String {
    let text = json!({ "label": [label] }).to_string();
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// The bridges of dockerd's networks. They remain on the node when the engine ends.
pub(super) fn bridges(client: &HttpClient) -> Result<Vec<String>> {
    let networks = client.get(NETWORKS)?;
    let rows = networks.as_array().into_iter().flatten();
    let name = |row: &Value| {
        let given = row.pointer("/Options/com.docker.network.bridge.name");
        let given = given.and_then(Value::as_str).map(str::to_owned);
        let id = || row.get("Id").and_then(Value::as_str)?.get(..12);
        given.or_else(|| id().map(|id| format!("br-{id}")))
    };
    let own = rows.filter(|row| !is_built_in(row));
    Ok(own.filter_map(name).collect())
}

fn is_built_in(row: &Value) -> bool {
    row.get("Name")
        .and_then(Value::as_str)
        .is_some_and(|name| BUILT_IN.contains(&name))
}

/// Removes bridges that still exist. The engine makes them again when it starts.
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
    for chunk in ids.chunks(CONCURRENCY) {
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

#[cfg(test)]
mod tests {
    use super::filters;

    #[test]
    fn filters_hold_no_character_that_a_query_gives_a_meaning() {
        let text = filters("a=b");
        assert!(text.starts_with("%7B%22%6C%61"));
        assert!(text.bytes().all(|b| b == b'%' || b.is_ascii_hexdigit()));
    }
}

//! What is in an engine: stopped together, or removed without rest.

use super::kind::Kind;
use crate::http::{Client, Request};
use crate::process::{command, succeeds};
use anyhow::Result;
use serde_json::{Value, json};
use std::time::Duration;

/// Containers worked on at once.
const AT_ONCE: usize = 16;
/// The networks that every engine has; Podman has the last one, and cannot list without it.
const BUILT_IN: [&str; 4] = ["bridge", "host", "none", "podman"];
const NETWORKS: &str = "/networks";
/// The same in Podman's own interface, which names their bridges.
const LIBPOD_NETWORKS: &str = "/v4.0.0/libpod/networks/json";
/// What a container whose data is kept gets to stop by itself, seconds.
pub const GRACE_S: u64 = 8;
/// For one answer of an engine that is still removing others.
const PATIENCE: Duration = Duration::from_secs(60);

/// Everything in an engine; or, in an engine that others use too, what has one label.
pub struct Contents {
    client: Client,
    label: Option<String>,
}

impl Contents {
    /// Everything.
    pub(super) fn all(client: Client) -> Self {
        Self {
            client,
            label: None,
        }
    }

    /// What has this label, `KEY=VALUE`, and nothing else.
    pub fn labelled(client: Client, label: String) -> Self {
        Self {
            client,
            label: Some(label),
        }
    }

    /// Stops the containers that run; each gets `grace` seconds to do it by itself.
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
                .send(Request::new("DELETE", &path).timeout(PATIENCE))
                .map(drop)
        })?;
        for_each(&ids(&self.networks()?), |id| {
            let path = format!("/networks/{id}");
            self.client.send(Request::new("DELETE", &path)).map(drop)
        })
    }

    /// Whether there is neither container nor network.
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
        let list = Request::new("GET", &path).timeout(PATIENCE);
        self.client.send(list)?.ok()?.json()
    }
}

/// Percent-encoded throughout: no character of JSON is one of a query.
fn filters(label: &str) -> String {
    let text = json!({ "label": [label] }).to_string();
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
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

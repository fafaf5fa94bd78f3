//! What an instance leaves in the engines, which may be a user's own: nothing, once a check is over.

use super::nodes::Node;
use crate::http::{Client, Endpoint};
use crate::process::wait_until;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::time::Duration;

/// Deleted for its user at once, an instance is removed from its engine after that.
const REMOVAL_LIMIT: Duration = Duration::from_secs(120);

/// What an engine has of one Wharf installation.
pub(super) struct Traces {
    engine: Client,
    installation: String,
}

impl Traces {
    /// Those of the installation that made this instance; none if no engine has it.
    pub fn of(nodes: &[Node], uuid: &str) -> Result<Option<Self>> {
        for node in nodes.iter().filter(|node| node.driver != "simulated") {
            let engine = Client::new(Endpoint::parse(&node.endpoint)?);
            let found = containers(&engine, &format!("io.wharf.instance={uuid}"))?;
            let label = found.pointer("/0/Labels/io.wharf.installation");
            if let Some(installation) = label.and_then(Value::as_str) {
                let installation = installation.to_owned();
                return Ok(Some(Self {
                    engine,
                    installation,
                }));
            }
        }
        Ok(None)
    }

    /// Waits until the engine has nothing of it.
    pub fn wait_until_gone(&self) -> Result<()> {
        let gone = wait_until(REMOVAL_LIMIT, || self.is_nothing_left().unwrap_or(false));
        ensure!(
            gone,
            "the engine at {} still has a container or a network with the label \
             io.wharf.installation={}",
            self.engine.endpoint(),
            self.installation
        );
        Ok(())
    }

    fn is_nothing_left(&self) -> Result<bool> {
        let label = format!("io.wharf.installation={}", self.installation);
        let none = |list: &Value| list.as_array().is_none_or(Vec::is_empty);
        Ok(none(&containers(&self.engine, &label)?) && none(&networks(&self.engine, &label)?))
    }
}

/// Subnets that an engine has given to networks, also where the machine has no routes to them, as
/// with engines without root.
pub(super) fn subnets(engine: &Client) -> Result<Vec<String>> {
    let networks = engine.get("/networks").context("the engine's networks")?;
    let configs = networks.as_array().into_iter().flatten();
    let configs = configs.filter_map(|network| network.pointer("/IPAM/Config")?.as_array());
    let subnets = configs.flatten().filter_map(|config| config.get("Subnet"));
    Ok(subnets
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect())
}

fn containers(engine: &Client, label: &str) -> Result<Value> {
    engine.get(&format!(
        "/containers/json?all=true&filters={}",
        filters(label)
    ))
}

fn networks(engine: &Client, label: &str) -> Result<Value> {
    engine.get(&format!("/networks?filters={}", filters(label)))
}

/// Percent-encoded throughout: no character of JSON is one of a query.
fn filters(label: &str) -> String {
    let text = json!({ "label": [label] }).to_string();
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
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

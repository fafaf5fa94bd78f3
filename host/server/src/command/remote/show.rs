//! `wharf show`.

use super::connection::Connection;
use super::names;
use super::output::{cell, field, hourly_usd, json, list, usd};
use anyhow::Result;
use clap::Args;
use serde_json::Value;

/// Show an instance with its cost, and the fingerprints of its SSH host keys
#[derive(Args)]
pub struct Show {
    /// Name or UUID of the instance
    #[arg(add = names::instances())]
    name: String,
    #[command(flatten)]
    connection: Connection,
}

impl Show {
    pub async fn run(self) -> Result<()> {
        let client = self.connection.client()?;
        let instance = client.get_instance(&self.name).send().await?.into_value();
        if self.connection.is_json() {
            return json(&instance);
        }
        let uuid = field(&instance, "uuid");
        let keys = client.list_host_keys(&uuid).send().await?.into_value();
        let usage = client.get_usage(None, None).send().await?.into_value();
        let mut rows = rows(&instance);
        if field(&instance, "state") == "error" {
            let events = client.list_events(Some(1000), None, Some(&uuid), None);
            let events = events.send().await?.into_value();
            rows.insert(2, ("reason", reason(&events)));
        }
        rows.extend(cost_rows(&usage, &uuid));
        let keys = keys.as_array().into_iter().flatten();
        rows.extend(keys.map(|key| {
            let shown = format!("{} {}", field(key, "type"), field(key, "fingerprint"));
            ("ssh_host_key", shown)
        }));
        list(&rows)
    }
}

/// Why an instance is in error, by its events.
fn reason(events: &Value) -> String {
    let mut events = events.as_array().into_iter().flatten().rev();
    let failed = events.find(|event| field(event, "type") == "failed");
    failed.map_or_else(|| "-".to_owned(), |event| field(event, "message"))
}

/// The cost of an instance now and in this month.
fn cost_rows(usage: &Value, uuid: &str) -> [(&'static str, String); 2] {
    let instances = usage.get("instances").and_then(Value::as_array);
    let cost = instances
        .into_iter()
        .flatten()
        .find(|cost| cost.get("uuid").and_then(Value::as_str) == Some(uuid));
    // An instance without cost is left out.
    let cost = cost.unwrap_or(&Value::Null);
    [
        ("usd_per_hour", hourly_usd(cost, "hourly_usd")),
        ("usd_this_month", usd(cost, "total_usd")),
    ]
}

/// The fields that are shown first.
const FIRST: [&str; 10] = [
    "name",
    "state",
    "resource_type",
    "flavor",
    "n_vcpus",
    "mem_gib",
    "disk_size_gib",
    "ssh_command",
    "webapp_url",
    "public_ipv4",
];

/// Prints an instance. Only JSON has the password.
pub fn instance_as(connection: &Connection, instance: &Value) -> Result<()> {
    if connection.is_json() {
        return json(instance);
    }
    list(&rows(instance))
}

fn rows(instance: &Value) -> Vec<(&str, String)> {
    let fields = instance.as_object().into_iter().flatten();
    let shown = fields.filter(|(name, _)| *name != "original_service_password");
    let mut rows: Vec<_> = shown
        .map(|(name, value)| (name.as_str(), cell(value)))
        .collect();
    let place = |name: &str| FIRST.iter().position(|first| *first == name);
    rows.sort_by_key(|(name, _)| place(name).unwrap_or(FIRST.len()));
    rows
}

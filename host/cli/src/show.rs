//! `wharf ls` and `wharf show`.

use crate::connection::{Connection, InstanceArgs};
use crate::output::Column::{Number, Text, Whole};
use crate::output::{fields, hourly_usd, joined, json, list as print_list, or_none, table, usd};
use crate::volume::mounted_at;
use anyhow::Result;
use serde_json::Value;
use wharf_client::Reply;
use wharf_client::types::{EventList, InstanceFields, State};

pub async fn list(connection: &Connection) -> Result<()> {
    let instances = connection
        .client()?
        .list_instances(None, None)
        .send()
        .await?;
    let columns = [
        Text("NAME"),
        Whole("STATE"),
        Text("TYPE"),
        Text("FLAVOR"),
        Number("VCPUS"),
        Number("MEM"),
        Number("DISK"),
        Text("GPU"),
        Whole("ADDRESS"),
    ];
    connection.print(&instances, |instances| {
        table(columns, instances.0.iter().map(|instance| row(instance)))
    })
}

fn row(instance: &InstanceFields) -> [String; 9] {
    let address = instance
        .webapp_url
        .as_ref()
        .or(instance.ssh_command.as_ref());
    [
        instance.name.clone(),
        instance.state.to_string(),
        instance.resource_type.to_string(),
        instance.flavor.clone(),
        instance.n_vcpus.to_string(),
        format!("{} GiB", instance.mem_gib),
        format!("{} GiB", instance.disk_size_gib),
        or_none(instance.gpu_model.as_ref()),
        or_none(address),
    ]
}

pub async fn show(InstanceArgs { name, connection }: &InstanceArgs) -> Result<()> {
    let client = connection.client()?;
    let reply = client.get_instance(name).send().await?;
    if connection.is_json() {
        return instance_as(connection, &reply);
    }
    let instance = reply.body()?;
    let keys = client.list_host_keys(&instance.uuid).fetch().await?;
    let usage = client.get_usage(None, None).fetch().await?;
    let mut rows = rows(&reply);
    if instance.state == State::Error {
        let events = client.list_events(Some(1000), None, Some(&instance.uuid), None);
        rows.insert(2, ("reason", reason(&events.fetch().await?)));
    }
    // An instance without cost is left out of the usage.
    let cost = usage
        .instances
        .iter()
        .find(|cost| cost.uuid == instance.uuid);
    rows.extend(cost_rows(
        cost.map(|cost| (cost.hourly_usd, cost.total_usd)),
    ));
    let keys = keys.0.iter();
    rows.extend(keys.map(|key| ("ssh_host_key", format!("{} {}", key.type_, key.fingerprint))));
    print_list(&rows)
}

/// Why an instance is in error, by its events.
fn reason(events: &EventList) -> String {
    let failed = events.iter().rfind(|event| event.type_ == "failed");
    or_none(failed.and_then(|event| event.message.as_ref()))
}

/// The cost of a thing in an hour and in this month.
pub fn cost_rows(cost: Option<(f64, f64)>) -> [(&'static str, String); 2] {
    let (hourly, total) = cost.unwrap_or_default();
    [
        ("usd_per_hour", hourly_usd(hourly)),
        ("usd_this_month", usd(total)),
    ]
}

/// The field with volumes, which are objects.
const VOLUMES: &str = "volumes";

/// The fields that are shown first.
const FIRST: [&str; 11] = [
    "name",
    "state",
    "resource_type",
    "flavor",
    "n_vcpus",
    "mem_gib",
    "disk_size_gib",
    VOLUMES,
    "ssh_command",
    "webapp_url",
    "public_ipv4",
];

/// Prints an instance, whatever its fields. Only JSON has the password.
pub fn instance_as<T>(connection: &Connection, reply: &Reply<T>) -> Result<()> {
    if connection.is_json() {
        return json(reply.value());
    }
    print_list(&rows(reply))
}

/// A volume in the words of the option that attaches it.
fn mounted(volume: &Value) -> Option<String> {
    let text = |name| volume.get(name).and_then(Value::as_str);
    let is_read_only = volume.get("read_only").and_then(Value::as_bool);
    Some(mounted_at(text("name")?, text("path")?, is_read_only?))
}

fn rows<T>(reply: &Reply<T>) -> Vec<(&str, String)> {
    let shown = fields(reply).filter(|(name, _)| *name != "original_service_password");
    let mut rows: Vec<_> = shown.filter(|(name, _)| *name != VOLUMES).collect();
    if let Some(volumes) = reply.value().get(VOLUMES).and_then(Value::as_array) {
        rows.push((VOLUMES, joined(volumes.iter().filter_map(mounted))));
    }
    put_first(&mut rows, &FIRST);
    rows
}

/// Puts the rows with these names first.
pub fn put_first(rows: &mut [(&str, String)], first: &[&str]) {
    let place = |name: &str| first.iter().position(|first| *first == name);
    rows.sort_by_key(|(name, _)| place(name).unwrap_or(first.len()));
}

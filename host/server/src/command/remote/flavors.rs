//! `wharf flavors`.

use super::connection::Connection;
use super::output::{cell, field, json, table};
use anyhow::Result;
use clap::Args;
use serde_json::Value;

/// List the flavors, the software that instances can have
#[derive(Args)]
pub struct Flavors {
    #[command(flatten)]
    connection: Connection,
}

impl Flavors {
    pub async fn run(self) -> Result<()> {
        let client = self.connection.client()?;
        let flavors = client.list_flavors().send().await?.into_value();
        if self.connection.is_json() {
            return json(&flavors);
        }
        let list = flavors.as_array().into_iter().flatten();
        let rows: Vec<_> = list
            .map(|flavor| {
                let has = |name| (flavor.get(name) == Some(&true.into())).then_some(name);
                let features: Vec<_> = ["ssh", "web", "s3_prefill", "ai", "gpu_aware"]
                    .map(has)
                    .into_iter()
                    .flatten()
                    .collect();
                let minimum = flavor.get("minimum").unwrap_or(&Value::Null);
                let is_available = flavor.get("available") != Some(&false.into());
                [
                    field(flavor, "name"),
                    if is_available { "yes" } else { "no image" }.to_owned(),
                    field(flavor, "resource_types"),
                    cell(&features.into()),
                    format!(
                        "{} vCPUs, {} GiB, {} GiB",
                        field(minimum, "n_vcpus"),
                        field(minimum, "mem_gib"),
                        field(minimum, "disk_size_gib")
                    ),
                    field(flavor, "description"),
                ]
            })
            .collect();
        table(
            [
                "NAME",
                "AVAILABLE",
                "TYPES",
                "FEATURES",
                "MINIMUM",
                "DESCRIPTION",
            ],
            &rows,
        )
    }
}

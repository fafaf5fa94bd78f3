//! `wharf ls`.

use super::connection::Connection;
use super::output::{field, json, table};
use anyhow::Result;
use clap::Args;
use serde_json::Value;

/// List your instances
#[derive(Args)]
pub struct List {
    #[command(flatten)]
    connection: Connection,
}

impl List {
    pub async fn run(self) -> Result<()> {
        let client = self.connection.client()?;
        let list = client.list_instances(None, None).send().await?.into_value();
        if self.connection.is_json() {
            return json(&list);
        }
        let rows: Vec<_> = list.as_array().into_iter().flatten().map(row).collect();
        table(
            [
                "NAME", "STATE", "TYPE", "FLAVOR", "VCPUS", "MEM", "DISK", "GPU", "ADDRESS",
            ],
            &rows,
        )
    }
}

fn row(instance: &Value) -> [String; 9] {
    let of = |name| field(instance, name);
    let address = match of("webapp_url").as_str() {
        "-" => of("ssh_command"),
        url => url.to_owned(),
    };
    [
        of("name"),
        of("state"),
        of("resource_type"),
        of("flavor"),
        of("n_vcpus"),
        format!("{} GiB", of("mem_gib")),
        format!("{} GiB", of("disk_size_gib")),
        of("gpu_model"),
        address,
    ]
}

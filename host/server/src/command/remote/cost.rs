//! `wharf cost`.

use super::connection::Connection;
use super::output::{field, hourly_usd, json, line, table, time, usd};
use anyhow::Result;
use clap::Args;
use serde_json::Value;

/// Show the cost of your instances in USD, of this month unless a period is given
#[derive(Args)]
pub struct Cost {
    /// Start of the period, an ISO 8601 date or time
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// End of the period, exclusive
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
    #[command(flatten)]
    connection: Connection,
}

impl Cost {
    pub async fn run(self) -> Result<()> {
        let client = self.connection.client()?;
        let request = client.get_usage(self.from.as_deref(), self.to.as_deref());
        let usage = request.send().await?.into_value();
        if self.connection.is_json() {
            return json(&usage);
        }
        let instances = usage.get("instances").and_then(Value::as_array);
        let rows: Vec<_> = instances
            .into_iter()
            .flatten()
            .map(|instance| {
                let name = match field(instance, "name").as_str() {
                    "-" => field(instance, "uuid"),
                    name => name.to_owned(),
                };
                [
                    name,
                    field(instance, "state"),
                    field(instance, "flavor"),
                    size(instance),
                    hourly_usd(instance, "hourly_usd"),
                    usd(instance, "total_usd"),
                ]
            })
            .collect();
        table(
            ["INSTANCE", "STATE", "FLAVOR", "SIZE", "USD PER HOUR", "USD"],
            &rows,
        )?;
        line(&format!(
            "Total {} USD from {} to {}; {} USD per hour now.",
            usd(&usage, "total_usd"),
            time(&usage, "from"),
            time(&usage, "to"),
            hourly_usd(&usage, "hourly_usd")
        ))
    }
}

fn size(instance: &Value) -> String {
    let of = |name| field(instance, name);
    match of("n_vcpus").as_str() {
        "-" => "-".to_owned(),
        vcpus => {
            let (mem, disk) = (of("mem_gib"), of("disk_size_gib"));
            format!("{vcpus} vCPU, {mem} GiB, {disk} GiB")
        }
    }
}

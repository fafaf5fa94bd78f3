//! `wharf stats`.

use super::connection::Connection;
use super::names;
use super::output::{field, line, list, number, rounded};
use anyhow::Result;
use clap::Args;
use serde_json::Value;
use std::time::Duration;

/// The server looks at a window of a few seconds.
const PAUSE: Duration = Duration::from_secs(2);

/// Show the usage of a running container
#[derive(Args)]
pub struct Stats {
    /// Name or UUID of the instance
    #[arg(add = names::instances())]
    name: String,
    /// Show it every 2 seconds until Ctrl-C, one line each
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    connection: Connection,
}

impl Stats {
    pub async fn run(self) -> Result<()> {
        let client = self.connection.client()?;
        loop {
            let stats = client.get_stats(&self.name).send().await?.into_value();
            match (self.connection.is_json(), self.watch) {
                (true, _) => line(&stats.to_string())?,
                (false, true) => line(&summary(&stats))?,
                (false, false) => list(&[
                    (
                        "CPU",
                        format!(
                            "{} % of one vCPU",
                            rounded(number(&stats, "cpu_percent"), 2)
                        ),
                    ),
                    ("RAM", amount(&stats, "mem")),
                    ("Disk", amount(&stats, "disk")),
                ])?,
            }
            if !self.watch {
                return Ok(());
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

fn amount(stats: &Value, name: &str) -> String {
    let used = number(stats, &format!("{name}_used_gib"));
    let used = match used < 1.0 {
        true => format!("{} MiB", rounded(used * 1024.0, 2)),
        false => format!("{} GiB", rounded(used, 2)),
    };
    format!(
        "{used} of {} GiB",
        field(stats, &format!("{name}_total_gib"))
    )
}

fn summary(stats: &Value) -> String {
    format!(
        "CPU {} %  RAM {}  disk {}",
        rounded(number(stats, "cpu_percent"), 2),
        amount(stats, "mem"),
        amount(stats, "disk")
    )
}

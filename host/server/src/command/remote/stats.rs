//! `wharf stats`.

use super::connection::Connection;
use super::names;
use super::output::{field, line, list};
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
                        format!("{} % of one vCPU", field(&stats, "cpu_percent")),
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
    let of = |part| field(stats, &format!("{name}_{part}_gib"));
    format!("{} of {} GiB", of("used"), of("total"))
}

fn summary(stats: &Value) -> String {
    format!(
        "CPU {} %  RAM {}  disk {}",
        field(stats, "cpu_percent"),
        amount(stats, "mem"),
        amount(stats, "disk")
    )
}

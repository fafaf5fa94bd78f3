//! `wharf stats`.

use crate::connection::InstanceArgs;
use crate::output::{line, list, rounded};
use anyhow::Result;
use clap::Args;
use std::time::Duration;

/// The server looks at a window of a few seconds.
const PAUSE: Duration = Duration::from_secs(2);

/// Show the usage of a running container
#[derive(Args)]
pub struct Stats {
    /// Show it every 2 seconds until Ctrl-C, one line each
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    of: InstanceArgs,
}

impl Stats {
    pub async fn run(self) -> Result<()> {
        let InstanceArgs { name, connection } = &self.of;
        let client = connection.client()?;
        loop {
            let reply = client.get_stats(name).send().await?;
            let stats = reply.body()?;
            let cpu = rounded(stats.cpu_percent, 2);
            let mem = amount(stats.mem_used_gib, stats.mem_total_gib);
            let disk = amount(stats.disk_used_gib, stats.disk_total_gib);
            if connection.is_json() {
                line(&reply.value().to_string())?;
            } else if self.watch {
                line(&format!("CPU {cpu} %  RAM {mem}  disk {disk}"))?;
            } else {
                let cpu = format!("{cpu} % of one vCPU");
                list(&[("CPU", cpu), ("RAM", mem), ("Disk", disk)])?;
            }
            if !self.watch {
                return Ok(());
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

fn amount(used: f64, total: f64) -> String {
    let (used, unit) = if used < 1.0 {
        (used * 1024.0, "MiB")
    } else {
        (used, "GiB")
    };
    format!("{} {unit} of {total} GiB", rounded(used, 2))
}

//! `wharf cost`.

use crate::connection::Connection;
use crate::output::Column::{Number, Text, Whole};
use crate::output::{hourly_usd, line, or_none, table, time, usd};
use anyhow::Result;
use clap::Args;
use wharf_client::types::{InstanceCost, SnapshotCost, VolumeCost};

/// Show the cost of your instances, volumes and snapshots in USD, of this month unless a period is given
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
        let usage = request.send().await?;
        let columns = [
            Text("NAME"),
            Whole("STATE"),
            Text("FLAVOR"),
            Text("SIZE"),
            Number("USD PER HOUR"),
            Number("USD"),
        ];
        self.connection.print(&usage, |usage| {
            let volumes = usage.volumes.iter().map(volume_row);
            let snapshots = usage.snapshots.iter();
            let snapshots = snapshots.map(|cost| snapshot_row(cost, &usage.instances));
            let instances = usage.instances.iter().map(row);
            table(columns, instances.chain(volumes).chain(snapshots))?;
            line(&format!(
                "Total {} USD from {} to {}; {} USD per hour now.",
                usd(usage.total_usd),
                time(Some(&usage.from)),
                time(Some(&usage.to)),
                hourly_usd(usage.hourly_usd)
            ))
        })
    }
}

fn row(cost: &InstanceCost) -> [String; 6] {
    let size = cost.n_vcpus.map(|vcpus| {
        let (mem, disk) = (or_none(cost.mem_gib), or_none(cost.disk_size_gib));
        format!("{vcpus} vCPU, {mem} GiB, {disk} GiB")
    });
    [
        cost.name.clone().unwrap_or_else(|| cost.uuid.to_string()),
        cost.state.to_string(),
        or_none(cost.flavor.as_ref()),
        or_none(size),
        hourly_usd(cost.hourly_usd),
        usd(cost.total_usd),
    ]
}

fn volume_row(cost: &VolumeCost) -> [String; 6] {
    [
        cost.name.clone(),
        cost.state.to_string(),
        "volume".to_owned(),
        format!("{} GiB", cost.size_gib),
        hourly_usd(cost.hourly_usd),
        usd(cost.total_usd),
    ]
}

fn snapshot_row(cost: &SnapshotCost, instances: &[InstanceCost]) -> [String; 6] {
    let uuid = cost.instance.as_ref();
    let of = instances.iter().find(|of| Some(&of.uuid) == uuid);
    let name = of.and_then(|of| of.name.as_deref());
    let name = name.or(uuid.map(|uuid| uuid.as_str()));
    [
        match name {
            Some(name) => format!("{name}/{}", cost.name),
            None => cost.name.clone(),
        },
        cost.state.to_string(),
        "snapshot".to_owned(),
        format!("{} GiB", cost.size_gib),
        hourly_usd(cost.hourly_usd),
        usd(cost.total_usd),
    ]
}

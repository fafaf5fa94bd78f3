//! `GET /api/instance/{uuid}/stats/`.

use super::{EndpointReply, EndpointRequest, EndpointResult, render};
use serde::Serialize;
use wharf_instances::{InstanceStats, Selector};

/// The stats object: specification 2.5.
#[derive(Serialize)]
struct StatsWire {
    cpu_percent: f64,
    mem_used_gib: f64,
    mem_total_gib: f64,
    disk_used_gib: f64,
    disk_total_gib: u32,
}

/// The usage of a running container.
pub async fn run(request: EndpointRequest<Selector>) -> EndpointResult {
    let (api, caller, selector) = request.parts();
    let stats = api.app.stats(caller, selector).await?;
    Ok(EndpointReply::Aged(
        render(&wire(&stats), 192)?,
        stats.age.as_secs(),
    ))
}

fn wire(stats: &InstanceStats) -> StatsWire {
    StatsWire {
        cpu_percent: (stats.cpu_percent * 100.0).round() / 100.0,
        mem_used_gib: gib(stats.mem_used_bytes),
        mem_total_gib: f64::from(stats.mem_total_gib),
        disk_used_gib: gib(stats.disk_used_bytes),
        disk_total_gib: stats.disk_total_gib,
    }
}

/// To six decimals, which is about a KiB.
#[expect(clippy::cast_precision_loss, reason = "six decimals are shown")]
fn gib(bytes: u64) -> f64 {
    (bytes as f64 / f64::from(1_u32 << 30) * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::wire;
    use std::time::Duration;
    use wharf_instances::InstanceStats;

    #[test]
    fn units() {
        let stats = InstanceStats {
            cpu_percent: 137.504_2,
            mem_used_bytes: 3 << 29,
            mem_total_gib: 4,
            disk_used_bytes: 1 << 20,
            disk_total_gib: 40,
            age: Duration::ZERO,
        };
        assert_eq!(
            serde_json::to_string(&wire(&stats)).unwrap(),
            r#"{"cpu_percent":137.5,"mem_used_gib":1.5,"mem_total_gib":4.0,"disk_used_gib":0.000977,"disk_total_gib":40}"#
        );
    }
}

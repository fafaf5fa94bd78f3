//! Live usage of a running container, read from its engine.
//!
//! Some engines take a second for one reading. So only the first request waits for the engine. A task of
//! the node then samples the usage while requests continue.

mod sampler;
mod samples;

pub use sampler::run;
pub use samples::Samples;

use super::find::{Selector, find};
use super::{App, Caller};
use samples::{Measured, SHORTEST_WINDOW};
use std::time::Duration;
use wharf_domain::driver::{Tag, Usage};
use wharf_domain::error::Error;
use wharf_domain::instance::{Instance, ResourceType};
use wharf_domain::state::InstanceState;

/// Live usage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stats {
    /// CPU usage; 100 is one full vCPU.
    pub cpu_percent: f64,
    /// RAM in use, bytes.
    pub mem_used_bytes: u64,
    /// RAM allotted, GiB.
    pub mem_total_gib: u32,
    /// Disk in use, bytes.
    pub disk_used_bytes: u64,
    /// Disk allotted, GiB.
    pub disk_total_gib: u32,
}

/// The age beyond the interval of samples up to which one answers a request.
const LATE: Duration = Duration::from_secs(3);

impl App {
    /// Returns the newest sample of the usage, or reads one within the configured time.
    pub async fn stats(&self, caller: &Caller, selector: &Selector) -> Result<Stats, Error> {
        let instance = self.db.read(|rows| find(rows, caller.user, selector))?;
        if instance.resource_type == ResourceType::Vm {
            return Err(Error::NotApplicable(
                "live stats are available for containers only; this instance is a VM",
            ));
        }
        let state = instance.state();
        if state != InstanceState::Running {
            return Err(Error::State {
                verb: "read the stats of",
                state,
                needed: "running",
            });
        }
        if self.nodes.is_away(&instance.node) {
            let state = self.nodes.state(&instance.node);
            return Err(Error::NodeUnreachable(format!("stats: {state}")));
        }
        let measured = match self.samples.look(&instance, self.stats_interval() + LATE) {
            Some(measured) => measured,
            None => self.sample_in_time(&instance).await?,
        };
        Ok(Stats {
            cpu_percent: measured.cpu_percent,
            mem_used_bytes: measured.mem_used_bytes,
            mem_total_gib: instance.size.mem_gib,
            disk_used_bytes: measured.disk_used_bytes,
            disk_total_gib: instance.size.disk_size_gib,
        })
    }

    fn stats_interval(&self) -> Duration {
        Duration::from_millis(self.config().limits.stats_every_ms)
    }

    async fn sample_in_time(&self, instance: &Instance) -> Result<Measured, Error> {
        let bound = Duration::from_millis(self.config().limits.stats_timeout_ms);
        tokio::time::timeout(bound, self.sample(instance))
            .await
            .map_err(|_| Error::NodeUnreachable("stats: no answer in time".to_owned()))?
    }

    async fn sample(&self, instance: &Instance) -> Result<Measured, Error> {
        let before = match self.samples.recent(instance) {
            Some(usage) => usage,
            None => {
                let usage = self.usage(instance, false).await?;
                tokio::time::sleep(SHORTEST_WINDOW).await;
                usage
            }
        };
        let usage = self.usage(instance, true).await?;
        let measured = Measured {
            cpu_percent: cpu_percent(before, usage),
            mem_used_bytes: usage.mem_used_bytes,
            disk_used_bytes: usage.disk_used_bytes,
        };
        self.samples.keep(instance, usage, measured);
        Ok(measured)
    }

    async fn usage(&self, instance: &Instance, disk: bool) -> Result<Usage, Error> {
        let driver = self.drivers.get(&instance.node).ok_or_else(|| {
            Error::NodeUnreachable(format!("node {} is not configured", instance.node))
        })?;
        let tag = Tag {
            instance: instance.id,
            incarnation: instance.incarnation,
        };
        let driver = driver.clone();
        let usage = self
            .call(async move { driver.stats(tag, disk).await })
            .await;
        usage.map_err(|error| Error::NodeUnreachable(format!("stats: {error}")))
    }
}

/// The CPU usage between two samples; zero if the counter was reset by a start.
#[expect(
    clippy::cast_precision_loss,
    reason = "nanoseconds of a few seconds, as a percentage"
)]
fn cpu_percent(before: Usage, after: Usage) -> f64 {
    let cpu = after.cpu_ns.saturating_sub(before.cpu_ns);
    let wall = after.at_ns.saturating_sub(before.at_ns);
    if wall == 0 {
        0.0
    } else {
        100.0 * cpu as f64 / wall as f64
    }
}

//! Live usage of a running container, read from its engine.

use super::find::{Selector, find};
use super::{App, Caller};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use wharf_domain::driver::{Tag, Usage};
use wharf_domain::error::Error;
use wharf_domain::ids::InstanceId;
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

/// The shortest window for CPU usage; a shorter one measures noise.
const SHORTEST_WINDOW: Duration = Duration::from_millis(250);
/// The longest window; an older sample is not about the present.
const LONGEST_WINDOW: Duration = Duration::from_secs(5);
/// Samples kept for the next request.
const MAX_SAMPLES: usize = 4096;

/// The last samples, by instance.
#[derive(Debug, Default)]
pub struct Samples(Mutex<HashMap<InstanceId, (Instant, Usage)>>);

impl Samples {
    fn recent(&self, id: InstanceId) -> Option<Usage> {
        let samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, usage) = samples.get(&id)?;
        (SHORTEST_WINDOW..LONGEST_WINDOW)
            .contains(&at.elapsed())
            .then_some(*usage)
    }

    fn keep(&self, id: InstanceId, usage: Usage) {
        let mut samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if samples.len() >= MAX_SAMPLES {
            samples.retain(|_, (at, _)| at.elapsed() < LONGEST_WINDOW);
        }
        if samples.len() < MAX_SAMPLES {
            samples.insert(id, (Instant::now(), usage));
        }
    }
}

impl App {
    /// Reads the usage within the configured time.
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
        let bound = Duration::from_millis(self.config().limits.stats_timeout_ms);
        tokio::time::timeout(bound, self.sample(&instance))
            .await
            .map_err(|_| Error::NodeUnreachable("stats: no answer in time".to_owned()))?
    }

    async fn sample(&self, instance: &Instance) -> Result<Stats, Error> {
        let before = match self.samples.recent(instance.id) {
            Some(usage) => usage,
            None => {
                let usage = self.usage(instance, false).await?;
                tokio::time::sleep(SHORTEST_WINDOW).await;
                usage
            }
        };
        let usage = self.usage(instance, true).await?;
        self.samples.keep(instance.id, usage);
        Ok(Stats {
            cpu_percent: cpu_percent(before, usage),
            mem_used_bytes: usage.mem_used_bytes,
            mem_total_gib: instance.size.mem_gib,
            disk_used_bytes: usage.disk_used_bytes,
            disk_total_gib: instance.size.disk_size_gib,
        })
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

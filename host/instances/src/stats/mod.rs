//! Live usage of a running container, read from its engine.
//!
//! Some engines take a second for one reading, and many when they are busy. So only the first request
//! waits for the engine. A task of the node then samples the usage while requests continue. A busy engine
//! answers other requests meanwhile, and its last sample is shown with its age.

mod sampler;
mod samples;

pub use sampler::run;
pub use samples::Samples;

use super::App;
use super::find::{Selector, find};
use crate::nodes::NodeState;
use samples::{Measured, SHORTEST_WINDOW, Sample};
use std::time::Duration;
use tokio::time::Instant;
use wharf_domain::driver::{PluginError, ResourceUsage, Tag};
use wharf_domain::error::Error;
use wharf_domain::ids::NodeId;
use wharf_domain::instance::{Instance, ResourceType};
use wharf_domain::state::InstanceState;
use wharf_ground::caller::Caller;
use wharf_plugin::NodeDriver;

/// Live usage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InstanceStats {
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
    /// Age of the sample.
    pub age: Duration,
}

/// The age beyond the interval of samples up to which one answers a request.
const LATE: Duration = Duration::from_secs(3);
/// The time without any answer after which an engine is out of reach.
const SILENCE: Duration = Duration::from_secs(3);

impl App {
    /// Returns the newest sample of the usage, or reads one within the configured time.
    pub async fn stats(
        &self,
        caller: &Caller,
        selector: &Selector,
    ) -> Result<InstanceStats, Error> {
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
        if self.growing.has(instance.id) {
            return Err(Error::NotApplicable(
                "the instance starts when the work on its disk is done; its stats follow then",
            ));
        }
        let sample = self.newest(&instance).await.map_err(unreachable)?;
        let measured = sample.measured;
        Ok(InstanceStats {
            cpu_percent: measured.cpu_percent,
            mem_used_bytes: measured.mem_used_bytes,
            mem_total_gib: instance.size.mem_gib,
            disk_used_bytes: measured.disk_used_bytes,
            disk_total_gib: instance.size.disk_size_gib,
            age: sample.at.elapsed(),
        })
    }

    async fn newest(&self, instance: &Instance) -> Result<Sample, PluginError> {
        let driver = self.driver_in_reach(&instance.node)?;
        let held = self.samples.look(instance);
        let fresh = self.stats_interval() + LATE;
        let (bound, held) = match held {
            Some(sample) if sample.at.elapsed() < fresh || answers(driver) => return Ok(sample),
            Some(sample) => (SILENCE, Some(sample)),
            None => (self.stats_timeout(), None),
        };
        let read = self.sample_in_time(instance, driver, bound).await;
        read.or_else(|error| match held {
            Some(sample) if is_late(&error) && answers(driver) => Ok(sample),
            _ => Err(error),
        })
    }

    /// The driver of a node, unless its observer has found it out of reach and its engine has not
    /// answered since.
    fn driver_in_reach(&self, node: &NodeId) -> Result<&NodeDriver, PluginError> {
        let out_of_reach = |why: String| Err(PluginError::Unreachable(why));
        let Some(driver) = self.drivers.get(node) else {
            return out_of_reach(format!("node {node} is not configured"));
        };
        match self.nodes.state(node) {
            state @ NodeState::Outage(_) => out_of_reach(state.to_string()),
            state @ NodeState::Unreachable(_) if !answers(driver) => {
                out_of_reach(state.to_string())
            }
            _ => Ok(driver),
        }
    }

    fn stats_interval(&self) -> Duration {
        Duration::from_millis(self.config().limits.stats_every_ms)
    }

    fn stats_timeout(&self) -> Duration {
        Duration::from_millis(self.config().limits.stats_timeout_ms)
    }

    async fn sample_in_time(
        &self,
        instance: &Instance,
        driver: &NodeDriver,
        bound: Duration,
    ) -> Result<Sample, PluginError> {
        tokio::select! {
            biased;
            read = self.sample(instance, driver) => read,
            () = self.silence(driver) => Err(PluginError::Unreachable("it answers no request".to_owned())),
            () = tokio::time::sleep(bound) => Err(PluginError::Unreachable("no answer in time".to_owned())),
        }
    }

    /// Completes when the engine has answered no request for [`SILENCE`]. The observer sends requests of
    /// its own, since a reading may be slow alone.
    async fn silence(&self, driver: &NodeDriver) {
        let begin = Instant::now();
        loop {
            let last = driver.last_answer().map_or(begin, |at| at.max(begin));
            let silent = last.elapsed();
            if silent >= SILENCE {
                return;
            }
            let mut next = SILENCE / 2;
            if silent >= next {
                self.nodes.look_soon(driver.name());
                next = SILENCE;
            }
            tokio::time::sleep(next - silent).await;
        }
    }

    async fn sample(
        &self,
        instance: &Instance,
        driver: &NodeDriver,
    ) -> Result<Sample, PluginError> {
        let before = match self.samples.recent(instance) {
            Some(usage) => usage,
            None => {
                let usage = self.usage(instance, driver, false).await?;
                tokio::time::sleep(SHORTEST_WINDOW).await;
                usage
            }
        };
        let usage = self.usage(instance, driver, true).await?;
        let measured = Measured {
            cpu_percent: cpu_percent(before, usage),
            mem_used_bytes: usage.mem_used_bytes,
            disk_used_bytes: usage.disk_used_bytes,
        };
        let sample = Sample {
            at: Instant::now(),
            usage,
            measured,
        };
        self.samples.keep(instance, sample);
        Ok(sample)
    }

    async fn usage(
        &self,
        instance: &Instance,
        driver: &NodeDriver,
        disk: bool,
    ) -> Result<ResourceUsage, PluginError> {
        let tag = Tag {
            instance: instance.id,
            incarnation: instance.incarnation,
        };
        let driver = driver.clone();
        self.call(async move { driver.stats(tag, disk).await })
            .await
    }
}

/// Whether the engine has answered a request lately.
fn answers(driver: &NodeDriver) -> bool {
    let last = driver.last_answer();
    last.is_some_and(|at| at.elapsed() < SILENCE)
}

/// Whether a reading may succeed later. Another error says that there is no usage.
fn is_late(error: &PluginError) -> bool {
    matches!(
        error,
        PluginError::Unreachable(_) | PluginError::Busy | PluginError::RetryLater(_)
    )
}

fn unreachable(error: PluginError) -> Error {
    Error::NodeUnreachable(format!("stats: {error}"))
}

/// The CPU usage between two samples; zero if the counter was reset by a start.
#[expect(
    clippy::cast_precision_loss,
    reason = "nanoseconds of a few seconds, as a percentage"
)]
fn cpu_percent(before: ResourceUsage, after: ResourceUsage) -> f64 {
    let cpu = after.cpu_ns.saturating_sub(before.cpu_ns);
    let wall = after.at_ns.saturating_sub(before.at_ns);
    if wall == 0 {
        0.0
    } else {
        100.0 * cpu as f64 / wall as f64
    }
}

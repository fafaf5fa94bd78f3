//! The newest sample of each instance that a user looks at.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;
use wharf_domain::driver::ResourceUsage;
use wharf_domain::ids::{Generation, InstanceId, NodeId};
use wharf_domain::instance::Instance;

/// The shortest window for CPU usage; a shorter one measures noise.
pub const SHORTEST_WINDOW: Duration = Duration::from_millis(250);
/// The longest window; an older sample is not about the present.
const LONGEST_WINDOW: Duration = Duration::from_secs(5);
/// The time after a look for which an instance is sampled.
const WATCHED: Duration = Duration::from_secs(120);
/// Instances that are sampled. Looks at further ones wait for the engine.
const MAX_WATCHED: usize = 4096;

/// The samples, by instance.
#[derive(Debug, Default)]
pub struct Samples(Mutex<HashMap<InstanceId, Watched>>);

/// An instance that a user looks at.
#[derive(Debug)]
struct Watched {
    node: NodeId,
    /// The intent that the samples are of. A start resets the engine's counters.
    generation: Generation,
    looked: Instant,
    sample: Option<Sample>,
}

/// A sample of the usage.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    pub at: Instant,
    pub usage: ResourceUsage,
    pub measured: Measured,
}

/// The figures of a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    pub cpu_percent: f64,
    pub mem_used_bytes: u64,
    pub disk_used_bytes: u64,
}

impl Samples {
    /// Notes a look at an instance. Returns its newest sample.
    pub fn look(&self, instance: &Instance) -> Option<Sample> {
        let mut all = self.0.lock();
        if all.len() >= MAX_WATCHED && !all.contains_key(&instance.id) {
            all.retain(|_, watched| watched.looked.elapsed() < WATCHED);
            if all.len() >= MAX_WATCHED {
                return None;
            }
        }
        let new = || Watched {
            node: instance.node.clone(),
            generation: instance.generation,
            looked: Instant::now(),
            sample: None,
        };
        let watched = all.entry(instance.id).or_insert_with(new);
        if watched.generation != instance.generation {
            *watched = new();
        }
        watched.looked = Instant::now();
        watched.sample
    }

    /// The usage at the beginning of a window that ends now.
    pub fn recent(&self, instance: &Instance) -> Option<ResourceUsage> {
        let all = self.0.lock();
        let watched = all.get(&instance.id)?;
        let sample = watched
            .sample
            .filter(|_| watched.generation == instance.generation)?;
        (SHORTEST_WINDOW..LONGEST_WINDOW)
            .contains(&sample.at.elapsed())
            .then_some(sample.usage)
    }

    /// The disk in use by the newest sample since the last start of an instance, in bytes.
    pub fn disk_used(&self, instance: &Instance) -> Option<u64> {
        let all = self.0.lock();
        let watched = all.get(&instance.id)?;
        let own = watched.generation == instance.generation;
        let sample = watched.sample.filter(|_| own)?;
        Some(sample.measured.disk_used_bytes)
    }

    /// Keeps a sample for later looks.
    pub fn keep(&self, instance: &Instance, sample: Sample) {
        if let Some(watched) = self.0.lock().get_mut(&instance.id)
            && watched.generation == instance.generation
        {
            watched.sample = Some(sample);
        }
    }

    /// Drops the sample of an instance, so that the next look asks the engine.
    pub fn spoil(&self, id: InstanceId) {
        if let Some(watched) = self.0.lock().get_mut(&id) {
            watched.sample = None;
        }
    }

    /// Forgets an instance that has no usage any more.
    pub fn forget(&self, id: InstanceId) {
        self.0.lock().remove(&id);
    }

    /// The instances on a node that a user has looked at lately, and that have been sampled. The
    /// first sample is taken by the look itself.
    pub fn due(&self, node: &NodeId) -> Vec<InstanceId> {
        let mut all = self.0.lock();
        all.retain(|_, watched| watched.looked.elapsed() < WATCHED);
        let due = all
            .iter()
            .filter(|(_, watched)| watched.node == *node && watched.sample.is_some());
        due.map(|(id, _)| *id).collect()
    }
}

//! Metrics of writes.

use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

/// The shortest commit that is told from others, in seconds; each further bucket is twice as long.
const SHORTEST: f64 = 0.000_25;
const BUCKETS: u16 = 14;

/// Metrics of writes. Clones share them.
#[derive(Debug, Clone)]
pub struct DbMetrics {
    /// Durations of commits.
    pub(super) commits: Histogram,
    /// Use cases that wait for the writer.
    pub(super) queued: Gauge,
}

impl DbMetrics {
    pub(super) fn new() -> Self {
        Self {
            commits: Histogram::new(exponential_buckets(SHORTEST, 2.0, BUCKETS)),
            queued: Gauge::default(),
        }
    }

    /// Adds the figures to a registry.
    pub fn register(&self, registry: &mut Registry) {
        registry.register_with_unit(
            "db_commit_duration",
            "Durable commits of the database",
            Unit::Seconds,
            self.commits.clone(),
        );
        registry.register(
            "db_queue",
            "Writes that wait for the database",
            self.queued.clone(),
        );
    }
}

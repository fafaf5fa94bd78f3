//! Figures about calls of plugins.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use std::time::Duration;
use wharf_domain::driver::PluginError;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    function: &'static str,
    /// `fault` for traps, exceeded limits and missing answers.
    result: &'static str,
}

/// Figures about calls of plugins. Clones share them.
#[derive(Debug, Clone)]
pub struct PluginMetrics {
    calls: Family<CallLabels, Histogram, fn() -> Histogram>,
    pub(super) queued: Gauge,
}

impl PluginMetrics {
    pub(super) fn new() -> Self {
        let buckets: fn() -> Histogram = || Histogram::new(exponential_buckets(0.001, 4.0, 9));
        Self {
            calls: Family::new_with_constructor(buckets),
            queued: Gauge::default(),
        }
    }

    /// Adds the figures to a registry.
    pub fn register(&self, registry: &mut Registry) {
        registry.register_with_unit(
            "plugin_call_duration",
            "Calls of plugins, by function and result; traps and exceeded limits are a `fault`",
            Unit::Seconds,
            self.calls.clone(),
        );
        registry.register(
            "plugin_queue",
            "Calls of drivers that wait for their node or for a place among all guests",
            self.queued.clone(),
        );
    }

    pub(super) fn called<T>(
        &self,
        function: &'static str,
        answer: &Result<T, PluginError>,
        after: Duration,
    ) {
        let result = match answer {
            Ok(_) => "ok",
            Err(PluginError::Fault(_)) => "fault",
            Err(PluginError::Busy) => "busy",
            Err(_) => "error",
        };
        let call = CallLabels { function, result };
        self.calls.get_or_create(&call).observe(after.as_secs_f64());
    }
}

/// A call that waits, counted until it is dropped.
pub(super) struct Queued(Gauge);

impl Queued {
    pub(super) fn new(queued: &Gauge) -> Self {
        queued.inc();
        Self(queued.clone())
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        self.0.dec();
    }
}

//! Figures for the operator's monitoring. None names a user or an instance, so that their number is
//! bounded by the configuration.

use super::moves::drained;
use super::nodes::broken_limits;
use super::{App, NodeState};
use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;
use wharf_db::{Db, Read as _};
use wharf_domain::error::Error;
use wharf_domain::ids::NodeId;
use wharf_domain::state::InstanceState;

/// The time for which the count of instances is used. It reads every row of an instance.
const COUNT_FRESH: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StepLabels {
    step: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabels {
    state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NodeLabels {
    node: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NodeStateLabels {
    node: String,
    state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QuantityLabels {
    node: String,
    quantity: &'static str,
}

/// The figures. Some are kept up to date, and others are read at each scrape.
#[derive(Default)]
pub struct Metrics {
    attempts: Family<StepLabels, Counter>,
    failures: Family<StepLabels, Counter>,
    pending: Gauge,
    observations: Family<NodeLabels, Counter>,
    nodes: Family<NodeStateLabels, Gauge>,
    drained: Family<NodeLabels, Gauge>,
    limits_broken: Family<NodeLabels, Gauge>,
    capacity: Family<QuantityLabels, Gauge>,
    claimed: Family<QuantityLabels, Gauge>,
    instances: Family<StateLabels, Gauge>,
    disk_free: Gauge,
    disk_reserve: Gauge,
    database: Gauge,
    counted: Mutex<Option<Instant>>,
}

const STATES: [InstanceState; 6] = [
    InstanceState::Provisioning,
    InstanceState::Running,
    InstanceState::ShutOff,
    InstanceState::Exited,
    InstanceState::Error,
    InstanceState::Deleted,
];

const NODE_STATES: [&str; 4] = ["unknown", "reachable", "unreachable", "outage"];

impl Metrics {
    /// Notes an attempt of the reconciler.
    pub(super) fn attempted(&self, step: &'static str, failed: bool) {
        let step = StepLabels { step };
        self.attempts.get_or_create(&step).inc();
        if failed {
            self.failures.get_or_create(&step).inc();
        }
    }

    /// Notes the end of an observation of a node, whatever it found.
    pub(super) fn observed(&self, node: &NodeId) {
        let node = node.0.clone();
        self.observations.get_or_create(&NodeLabels { node }).inc();
    }

    fn register(&self, registry: &mut Registry) {
        let mut add = |name: &str, help: &str, family: &Family<StepLabels, Counter>| {
            registry.register(name, help, family.clone());
        };
        add(
            "reconciler_attempts",
            "Attempts of the reconciler, by step",
            &self.attempts,
        );
        add(
            "reconciler_failures",
            "Attempts of the reconciler that are tried again after a failure, by step",
            &self.failures,
        );
        registry.register(
            "reconciler_pending",
            "Instances whose node does not follow the intent yet",
            self.pending.clone(),
        );
        registry.register(
            "node_observations",
            "Observations of each node since the start, failed ones included",
            self.observations.clone(),
        );
        registry.register(
            "node_state",
            "1 for the present state of each node, 0 for its others",
            self.nodes.clone(),
        );
        registry.register(
            "node_drained",
            "Whether the operator drains the node",
            self.drained.clone(),
        );
        registry.register(
            "node_limits_broken",
            "Whether the last proof found that the node does not hold the sizes of disks",
            self.limits_broken.clone(),
        );
        for (name, help, family) in [
            ("node_capacity", "Configured capacity", &self.capacity),
            (
                "node_claimed",
                "Capacity that instances claim",
                &self.claimed,
            ),
        ] {
            registry.register(name, help, family.clone());
        }
        registry.register(
            "instances",
            "Instances by state; a deleted one is counted until its node no longer has it",
            self.instances.clone(),
        );
        for (name, help, gauge) in [
            (
                "disk_free",
                "Free space on the disk of data_dir",
                &self.disk_free,
            ),
            (
                "disk_reserve",
                "Free space below which changes are refused that free nothing",
                &self.disk_reserve,
            ),
            ("database_size", "Size of the database file", &self.database),
        ] {
            registry.register_with_unit(name, help, Unit::Bytes, gauge.clone());
        }
    }
}

impl App {
    /// Adds all figures below HTTP to a registry.
    pub fn register_metrics(&self, registry: &mut Registry) {
        self.db.metrics().register(registry);
        self.db.register_scrubs(registry);
        self.plugins.metrics().register(registry);
        self.metrics.register(registry);
        registry.register(
            "disk_full_refusals",
            "Changes refused because the disk of data_dir has less than its reserve",
            self.db.disk().refusals(),
        );
    }

    /// Reads the figures that are not kept up to date. It reads the database, so it blocks.
    pub fn refresh_metrics(&self) -> Result<(), Error> {
        let metrics = &self.metrics;
        let (pending, drained, broken) = self
            .db
            .read(|rows| Ok((rows.pending()?.len(), drained(rows)?, broken_limits(rows)?)))?;
        metrics.pending.set(signed(pending));
        for node in self.drivers.keys() {
            self.refresh_node(node);
            let labels = NodeLabels {
                node: node.0.clone(),
            };
            for (family, is) in [
                (&metrics.drained, drained.contains(node)),
                (&metrics.limits_broken, broken.contains_key(node)),
            ] {
                family.get_or_create(&labels).set(is.into());
            }
        }
        for usage in self.inventory.usage() {
            for (quantity, capacity, claimed) in usage.quantities {
                let node = usage.id.0.clone();
                let labels = QuantityLabels { node, quantity };
                metrics
                    .capacity
                    .get_or_create(&labels)
                    .set(signed(capacity));
                metrics.claimed.get_or_create(&labels).set(signed(claimed));
            }
        }
        metrics
            .disk_free
            .set(signed(self.db.disk().free().unwrap_or(0)));
        metrics.disk_reserve.set(signed(self.db.disk().reserve()));
        metrics
            .database
            .set(signed(Db::bytes_in(&self.config().data_dir)));
        self.count_instances()
    }

    fn refresh_node(&self, node: &NodeId) {
        let now = match self.nodes.state(node) {
            NodeState::Unknown => "unknown",
            NodeState::Reachable => "reachable",
            NodeState::Unreachable(_) => "unreachable",
            NodeState::Outage(_) => "outage",
        };
        for state in NODE_STATES {
            let node = node.0.clone();
            let labels = NodeStateLabels { node, state };
            let gauge = self.metrics.nodes.get_or_create(&labels);
            gauge.set((state == now).into());
        }
    }

    fn count_instances(&self) -> Result<(), Error> {
        let counted = &self.metrics.counted;
        let mut counted = counted.lock();
        if counted.is_some_and(|at| at.elapsed() < COUNT_FRESH) {
            return Ok(());
        }
        let mut states: BTreeMap<&str, usize> = BTreeMap::new();
        let read = self.db.read(|rows| {
            rows.each_instance(|instance| {
                *states.entry(instance.state().as_str()).or_default() += 1;
            })
        });
        *counted = Some(Instant::now());
        // The other figures tell of the damage.
        if let Err(error) = read {
            tracing::error!(error = %error.chain(), "cannot count the instances");
            self.metrics.instances.clear();
            return Ok(());
        }
        for state in STATES {
            let state = state.as_str();
            let count = states.get(state).copied().unwrap_or(0);
            let gauge = self.metrics.instances.get_or_create(&StateLabels { state });
            gauge.set(signed(count));
        }
        Ok(())
    }
}

fn signed(n: impl TryInto<i64>) -> i64 {
    n.try_into().unwrap_or(i64::MAX)
}

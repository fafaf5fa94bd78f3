//! The state and the features of each node, as its observer has found them.

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use tokio::sync::Notify;
use wharf_db::{Rows, Table, tables};
use wharf_domain::driver::Features;
use wharf_domain::error::Error;
use wharf_domain::ids::NodeId;
use wharf_domain::time::Timestamp;
use wharf_plugin::NodeDriver;

tables! {
    /// Nodes by name.
    pub const NODES: Table<String, (), NodeRow> =
        Table::bounded(b'N', 0, "One row of a node", "Always");
    /// Nodes whose last proof found that they do not hold the sizes of disks.
    pub const BROKEN_LIMITS: Table<String, (), BrokenLimits> =
        Table::bounded(b'N', 2, "One row of a node", "Until a later proof succeeds").followed();
}

/// The breach of a node's limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokenLimits {
    /// The time of the first proof that found it.
    pub since: Timestamp,
    /// The sign of it.
    pub why: String,
}

impl fmt::Display for BrokenLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, since {}", self.why, self.since.to_rfc3339())
    }
}

/// The nodes that do not hold the sizes of disks, and the signs.
pub fn broken_limits(rows: &impl Rows) -> Result<BTreeMap<NodeId, BrokenLimits>, Error> {
    let nodes = rows.all(&BROKEN_LIMITS)?;
    nodes
        .map(|row| row.map(|(node, (), broken)| (NodeId(node), broken)))
        .collect()
}

/// The facts about a node that outlive the process.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NodeRow {
    /// The mark of the engine's store; `None` before the first contact, or if the engine keeps none.
    pub mark: Option<String>,
    /// The operator has accepted the engine as it is now, and the observer has not yet acted on it.
    pub accepted: bool,
}

/// The state of a node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum NodeState {
    /// Not observed yet.
    #[default]
    Unknown,
    /// In reach, with its own store.
    Reachable,
    /// Out of reach, with the reason.
    Unreachable(String),
    /// In reach, and its store is not the one that has its instances.
    Outage(Outage),
}

/// The sign of an outage. It may be a data disk that is not mounted, or a tunnel to another machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outage {
    /// The store has the mark of another one.
    OtherMark,
    /// The store has no mark, and none of the node's instances.
    NoMark,
    /// All running instances are absent at once.
    AllAbsent,
}

impl fmt::Display for Outage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OtherMark => "the engine has another store",
            Self::NoMark => "the engine's store is empty and has lost its mark",
            Self::AllAbsent => "all of the node's instances are absent at once",
        })
    }
}

impl fmt::Display for NodeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("not observed yet"),
            Self::Reachable => f.write_str("reachable"),
            Self::Unreachable(why) => write!(f, "out of reach: {why}"),
            Self::Outage(outage) => write!(f, "outage: {outage}"),
        }
    }
}

/// The configured nodes.
#[derive(Debug)]
pub struct Nodes(BTreeMap<NodeId, NodeEntry>);

#[derive(Debug, Default)]
struct NodeEntry {
    seen: Mutex<NodeObservation>,
    /// Notified of each change of `seen`.
    changed: Notify,
    /// Notified when the observer should look.
    look: Notify,
    /// Notified when the node has to prove its limits.
    limits: Notify,
    /// Notified of a change of a volume.
    volumes: Notify,
    /// Notified of a change of a snapshot.
    snapshots: Notify,
}

#[derive(Debug, Default)]
struct NodeObservation {
    state: NodeState,
    /// The time at which the node entered this kind of state.
    since: Option<Timestamp>,
    /// The number of looks that have begun.
    begun: u64,
    /// The last look that found the node's own store, and the driver's count of interruptions then.
    /// None if a later look failed.
    verified: Option<(u64, u64)>,
    /// None before the first successful probe.
    features: Option<Features>,
    /// The last try of a proof of limits, or the reason that it had no result. None before the first one.
    proof: Option<Result<(), String>>,
}

impl Nodes {
    pub fn new(nodes: impl Iterator<Item = NodeId>) -> Self {
        Self(nodes.map(|node| (node, NodeEntry::default())).collect())
    }

    /// Returns the time since which a node is in its state; `None` before its first look.
    pub fn since(&self, node: &NodeId) -> Option<Timestamp> {
        self.0.get(node).and_then(|node| node.seen.lock().since)
    }

    /// Returns the state of a node.
    pub fn state(&self, node: &NodeId) -> NodeState {
        self.0
            .get(node)
            .map(|node| node.seen.lock().state.clone())
            .unwrap_or_default()
    }

    /// Returns the features of a node by its last probe, or `None` before its first successful one.
    pub fn features(&self, node: &NodeId) -> Option<Features> {
        self.0.get(node)?.seen.lock().features
    }

    /// Stores the result of a probe. Returns whether it differs from the last result.
    pub fn set_features(&self, node: &NodeId, features: Features) -> bool {
        let Some(node) = self.0.get(node) else {
            return false;
        };
        node.seen.lock().features.replace(features) != Some(features)
    }

    /// Whether a node is known to be out of reach, or to have an outage.
    pub fn is_away(&self, node: &NodeId) -> bool {
        let state = self.state(node);
        matches!(state, NodeState::Unreachable(_) | NodeState::Outage(_))
    }

    /// Makes the observer of a node look soon.
    pub fn look_soon(&self, node: &NodeId) {
        if let Some(node) = self.0.get(node) {
            node.look.notify_one();
        }
    }

    /// Completes when the observer should look.
    pub async fn should_look(&self, node: &NodeId) {
        match self.0.get(node) {
            Some(node) => node.look.notified().await,
            None => std::future::pending().await,
        }
    }

    /// Makes the keeper of a node's volumes read their rows.
    pub fn work_on_volumes(&self, node: &NodeId) {
        if let Some(node) = self.0.get(node) {
            node.volumes.notify_one();
        }
    }

    /// Completes when the keeper of a node's volumes should read their rows.
    pub async fn volume_work(&self, node: &NodeId) {
        match self.0.get(node) {
            Some(node) => node.volumes.notified().await,
            None => std::future::pending().await,
        }
    }

    /// Makes the keeper of a node's snapshots read their rows.
    pub fn work_on_snapshots(&self, node: &NodeId) {
        if let Some(node) = self.0.get(node) {
            node.snapshots.notify_one();
        }
    }

    /// Completes when the keeper of a node's snapshots should read their rows.
    pub async fn snapshot_work(&self, node: &NodeId) {
        match self.0.get(node) {
            Some(node) => node.snapshots.notified().await,
            None => std::future::pending().await,
        }
    }

    /// Makes a node prove within minutes that it holds the sizes of disks: a restore can end that.
    pub fn prove_limits(&self, node: &NodeId) {
        if let Some(node) = self.0.get(node) {
            node.limits.notify_one();
        }
    }

    /// Completes when a node has to prove its limits.
    pub async fn should_prove_limits(&self, node: &NodeId) {
        match self.0.get(node) {
            Some(node) => node.limits.notified().await,
            None => std::future::pending().await,
        }
    }

    /// Notes the last try of a proof of limits, or the reason that it had no result.
    pub fn set_proof(&self, node: &NodeId, proof: Result<(), String>) {
        if let Some(node) = self.0.get(node) {
            node.seen.lock().proof = Some(proof);
        }
    }

    /// Returns the reason that the last try proved nothing about a node that limits disks.
    pub fn unproven(&self, node: &NodeId) -> Option<String> {
        let seen = self.0.get(node)?.seen.lock();
        let proof = seen.proof.clone()?;
        proof
            .err()
            .filter(|_| seen.features.is_some_and(|f| f.disk_limit))
    }

    /// Returns the nodes for which [`Self::unproven`] has a reason, with it.
    pub fn all_unproven(&self) -> Vec<(NodeId, String)> {
        let nodes = self.0.keys();
        nodes
            .filter_map(|node| Some((node.clone(), self.unproven(node)?)))
            .collect()
    }

    /// Completes once a node was looked at.
    pub async fn first_look(&self, node: &NodeId) {
        let Some(node) = self.0.get(node) else {
            return;
        };
        loop {
            // Registered before the check, or a change in between would be lost.
            let changed = node.changed.notified();
            if node.seen.lock().state != NodeState::Unknown {
                return;
            }
            changed.await;
        }
    }

    /// Notes that a look begins.
    pub fn begin_look(&self, node: &NodeId) {
        if let Some(node) = self.0.get(node) {
            node.seen.lock().begun += 1;
        }
    }

    /// Notes the finding of the look. Returns the earlier state. A node in any state but
    /// [`NodeState::Reachable`] is no longer verified.
    pub fn found(
        &self,
        node: &NodeId,
        state: NodeState,
        interruptions: u64,
        now: Timestamp,
    ) -> NodeState {
        let Some(node) = self.0.get(node) else {
            return NodeState::Unknown;
        };
        let before = {
            let mut seen = node.seen.lock();
            let reachable = state == NodeState::Reachable;
            seen.verified = reachable.then_some((seen.begun, interruptions));
            if std::mem::discriminant(&seen.state) != std::mem::discriminant(&state) {
                seen.since = Some(now);
            }
            std::mem::replace(&mut seen.state, state)
        };
        node.changed.notify_waiters();
        before
    }

    /// Waits until the node is known to have its own store: it has been verified, and contact with its
    /// engine was not lost since. Otherwise a call might reach another store. Returns the driver's count of
    /// interruptions when the node had its own store.
    pub async fn verified(&self, driver: &NodeDriver) -> u64 {
        let Some(node) = self.0.get(driver.name()) else {
            return driver.interruptions();
        };
        let before = node.seen.lock().begun;
        loop {
            // Registered before the check, or a change in between would be lost.
            let changed = node.changed.notified();
            if let Some((look, interruptions)) = node.seen.lock().verified
                // An engine may end each connection after its answer. A new look then suffices.
                && (interruptions == driver.interruptions() || look > before)
            {
                return interruptions;
            }
            node.look.notify_one();
            changed.await;
        }
    }
}

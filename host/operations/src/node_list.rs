//! The nodes for the operator, and the operator's word about a node's engine.

use super::Operator;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use wharf_db::{Changes, Read as _, Rows as _};
use wharf_domain::audit::Origin;
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::ids::NodeId;
use wharf_domain::time::{Timestamp, rfc3339};
use wharf_ground::audit::record;
use wharf_instances::moves::drained;
use wharf_instances::nodes::{NODES, NodeState, broken_limits};

/// A node with its claims.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeLine {
    pub name: String,
    /// The driver; `None` if the node is not configured.
    pub driver: Option<String>,
    /// The state for display; `None` if no server runs.
    pub state: Option<String>,
    /// The time since which it is in this state.
    #[serde(with = "rfc3339::option")]
    pub since: Option<Timestamp>,
    /// The node takes no new instances.
    pub retired: bool,
    /// The operator drains the node.
    pub drained: bool,
    /// Number of instances, those that are being deleted included.
    pub instances: usize,
    /// Number of volumes and snapshots, those that are being deleted included.
    #[serde(default)]
    pub volumes_and_snapshots: usize,
    /// Claimed amounts.
    pub used: NodeAmounts<u64>,
    /// Amounts that may be claimed.
    pub capacity: NodeAmounts<u32>,
    /// The sign that the node does not hold the sizes of disks; `None` if it does, or cannot prove it.
    #[serde(default)]
    pub limits_broken: Option<String>,
    /// The reason that the last try proved nothing about the sizes of disks; `None` if it did, or no server runs.
    #[serde(default)]
    pub limits_unproven: Option<String>,
    /// Ports, addresses and GPUs that something outside Wharf holds.
    #[serde(default)]
    pub kept_out: Vec<String>,
}

/// vCPUs, GiB of RAM and GiB of disk of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NodeAmounts<T> {
    pub n_vcpus: T,
    pub mem_gib: T,
    pub disk_size_gib: T,
}

#[derive(Default)]
struct Sum {
    instances: usize,
    kept: usize,
    used: NodeAmounts<u64>,
}

impl Operator<'_> {
    /// Lists the configured nodes, and others that have instances.
    pub fn nodes(&self) -> Result<Vec<NodeLine>, Error> {
        let mut sums: BTreeMap<NodeId, Sum> = BTreeMap::new();
        self.db.read(|rows| {
            rows.each_claim(|_, claim| {
                let sum = sums.entry(claim.node.clone()).or_default();
                sum.instances += 1;
                sum.used.disk_size_gib += u64::from(claim.size.disk_size_gib);
                if claim.compute {
                    sum.used.n_vcpus += u64::from(claim.size.n_vcpus);
                    sum.used.mem_gib += u64::from(claim.size.mem_gib);
                }
            })?;
            for kept in rows.kept_claims()? {
                let sum = sums.entry(kept.node).or_default();
                sum.kept += 1;
                sum.used.disk_size_gib += u64::from(kept.size_gib);
            }
            Ok::<_, Error>(())
        })?;
        let drained = self.db.read(drained)?;
        let mut broken = self.db.read(broken_limits)?;
        let kept_out = self.inventory.kept_out();
        let mut lines = Vec::new();
        for node in &self.config.node {
            let id = NodeId(node.name.clone());
            let sum = sums.remove(&id).unwrap_or_default();
            let state = self.app.map(|app| app.nodes().state(&id).to_string());
            let since = self.app.and_then(|app| app.nodes().since(&id));
            let capacity = node.capacity;
            let drained = drained.contains(&id);
            let limits_broken = broken.remove(&id).map(|broken| broken.to_string());
            let limits_unproven = self.app.and_then(|app| app.nodes().unproven(&id));
            let kept_out = kept_out.iter().filter(|kept| kept.node == id);
            let kept_out = kept_out.map(ToString::to_string).collect();
            lines.push(NodeLine {
                name: id.0,
                driver: Some(node.driver.clone()),
                state,
                since,
                retired: node.retired,
                drained,
                instances: sum.instances,
                volumes_and_snapshots: sum.kept,
                used: sum.used,
                capacity: NodeAmounts {
                    n_vcpus: node.claimable_vcpus(),
                    mem_gib: capacity.mem_gib,
                    disk_size_gib: capacity.disk_size_gib,
                },
                limits_broken,
                limits_unproven,
                kept_out,
            });
        }
        lines.extend(sums.into_iter().map(|(id, sum)| NodeLine {
            name: id.0,
            driver: None,
            state: None,
            since: None,
            retired: false,
            drained: false,
            instances: sum.instances,
            volumes_and_snapshots: sum.kept,
            used: sum.used,
            capacity: NodeAmounts::default(),
            limits_broken: None,
            limits_unproven: None,
            kept_out: Vec::new(),
        }));
        Ok(lines)
    }

    /// Accepts the engine that a node with an outage shows: absent instances have ended.
    pub async fn accept_node(&self, name: &str) -> Result<(), Error> {
        let refuse = |why: String| Err(FieldErrors::one("node", why).into());
        if !self.config.node.iter().any(|node| node.name == name) {
            return refuse(format!("no node is called {name:?}"));
        }
        let Some(app) = self.app else {
            return refuse(
                "start the server first: it sees what the node's engine shows".to_owned(),
            );
        };
        let node = NodeId(name.to_owned());
        let state = app.nodes().state(&node);
        if !matches!(state, NodeState::Outage(_)) {
            return refuse(format!(
                "node {name} has no outage to accept; it is: {state}"
            ));
        }
        let id = node.clone();
        self.db
            .write_essential(move |view| {
                let mut row = view.rows.get(&NODES, &*id.0)?.unwrap_or_default();
                row.accepted = true;
                let origin = Origin::operator();
                let audited = record(view, &origin, "node.accept", None, &id.0, "accepted");
                let changes = Changes::none().put(&NODES, &*id.0, row);
                Ok(((), changes.with(audited)))
            })
            .await?;
        app.nodes().look_soon(&node);
        Ok(())
    }
}

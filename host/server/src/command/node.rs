//! `wharf node`.

use super::operator::{OperatorCommand, Perform, operator_commands};
use super::{ConfigFile, runtime};
use crate::operation::Operation;
use crate::{check, log};
use anyhow::Result;
use clap::Args;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use wharf_cli::output::Column::{Number, Text};
use wharf_cli::output::{line, or_none, table};
use wharf_domain::driver::{NodeHealth, SnapshotKind};
use wharf_domain::error::Error;
use wharf_domain::time::Timestamp;
use wharf_operations::Operator;
use wharf_operations::drain::LeftOnNode;
use wharf_operations::lost::LostLine;
use wharf_operations::node_list::NodeLine;
use wharf_operations::restore_node::RescuedLine;

operator_commands! {
    pub enum Node {
        List(Perform<ListNodes>),
        Check(CheckNode),
        Accept(Perform<AcceptNode>),
        Drain(Perform<DrainNode>),
        Lost(Perform<LoseNode>),
        Restore(Perform<RestoreNode>),
        Resume(Perform<ResumeNode>),
    }
}

/// List nodes: name, engine, time of the last change of state, numbers of instances, and of volumes and
/// snapshots that it keeps, claimed and configured vCPUs, RAM and disk, and state
#[derive(Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListNodes {}

impl Operation for ListNodes {
    const PATH: &'static str = "/nodes/list";
    type Reply = Vec<NodeLine>;

    async fn run(&self, operator: Operator<'_>) -> Result<Vec<NodeLine>, Error> {
        operator.nodes()
    }

    fn print(&self, nodes: &Vec<NodeLine>) -> Result<()> {
        let columns = [
            Text("NAME"),
            Text("ENGINE"),
            Text("SINCE"),
            Number("INSTANCES"),
            Number("VOLUMES+SNAPSHOTS"),
            Number("VCPUS"),
            Number("MEM"),
            Number("DISK"),
            Text("STATE"),
        ];
        table(columns, nodes.iter().map(row))?;
        for node in nodes {
            if let Some(why) = &node.limits_broken {
                line(&format!(
                    "node {} does not hold the sizes of disks and volumes, and takes nothing new: {why}",
                    node.name
                ))?;
            }
            if let Some(why) = &node.limits_unproven {
                line(&format!(
                    "node {}: nothing proves that it holds the sizes of disks and volumes: {why}",
                    node.name
                ))?;
            }
        }
        nodes.iter().try_for_each(|node| {
            node.kept_out.iter().try_for_each(|what| {
                line(&format!(
                    "node {}: something outside Wharf holds {what}",
                    node.name
                ))
            })
        })
    }
}

/// The columns of a node; claimed and configured amounts.
fn row(node: &NodeLine) -> [String; 9] {
    let (used, all) = (node.used, node.capacity);
    let state = match node.driver {
        None => "not configured",
        Some(_) => node.state.as_deref().unwrap_or("the server does not run"),
    };
    let marks = [
        (node.retired, "retired, "),
        (node.drained, "drained, "),
        (node.limits_broken.is_some(), "limits broken, "),
    ];
    let marks = marks.iter().filter(|(is, _)| *is).map(|(_, mark)| *mark);
    [
        node.name.clone(),
        or_none(node.driver.as_ref()),
        or_none(node.since.map(Timestamp::to_rfc3339)),
        node.instances.to_string(),
        node.volumes_and_snapshots.to_string(),
        format!("{}/{}", used.n_vcpus, all.n_vcpus),
        format!("{}/{} GiB", used.mem_gib, all.mem_gib),
        format!("{}/{} GiB", used.disk_size_gib, all.disk_size_gib),
        marks.chain([state]).collect(),
    ]
}

/// Probe the engine of a node, and print its version, resources, features and the findings about it
///
/// No server needs to run. The exit status is 1 when the engine cannot be used.
#[derive(Args)]
pub struct CheckNode {
    /// The node's name
    name: String,
    #[command(flatten)]
    config: ConfigFile,
}

impl OperatorCommand for CheckNode {
    fn run(self) -> Result<()> {
        let config = self.config.load()?;
        let _log = log::to_stderr(false);
        let (health, findings) = runtime()?.block_on(check::node(&config, &self.name))?;
        let NodeHealth {
            version,
            features,
            totals,
            gpus,
            ..
        } = health;
        println!("{}: {version}", self.name);
        println!(
            "resources: {} vCPUs, {} GiB RAM, {} GiB disk, {} GPUs",
            totals.n_vcpus,
            totals.mem_gib,
            totals.disk_size_gib,
            gpus.len()
        );
        let features = [
            (features.containers, "containers"),
            (features.vms, "VMs"),
            (features.kvm, "hardware virtualization"),
            (features.live_resize, "live resize"),
            (features.disk_limit, "disk limits"),
            (features.volumes, "volumes"),
            (features.snapshots != SnapshotKind::None, "snapshots"),
            (features.stats, "usage"),
        ];
        let present: Vec<_> = features
            .iter()
            .filter(|(is, _)| *is)
            .map(|(_, feature)| *feature)
            .collect();
        println!("features: {}", present.join(", "));
        for finding in findings {
            println!("{}: {finding}", finding.severity);
        }
        Ok(())
    }
}

/// Accept the engine of a node with an outage as the new one: absent instances have ended
#[derive(Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcceptNode {
    /// The node's name
    name: String,
}

impl Operation for AcceptNode {
    const PATH: &'static str = "/nodes/accept";
    type Reply = ();

    async fn run(&self, operator: Operator<'_>) -> Result<(), Error> {
        operator.accept_node(&self.name).await
    }

    fn print(&self, (): &()) -> Result<()> {
        let name = &self.name;
        line(&format!(
            "node {name} is accepted; `wharf node list` shows its state"
        ))
    }
}

/// Let a node take no new instances and no starts of stopped ones, and list the instances left on it
///
/// Stopped instances move to other nodes of its cluster, and running ones whose owner permits it. Repeat
/// the command to see which are left. Volumes and snapshots stay, and so do instances with these.
#[derive(Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrainNode {
    /// The node's name
    name: String,
}

impl Operation for DrainNode {
    const PATH: &'static str = "/nodes/drain";
    type Reply = LeftOnNode;

    async fn run(&self, operator: Operator<'_>) -> Result<LeftOnNode, Error> {
        operator.drain_node(&self.name, true).await
    }

    fn print(&self, left: &LeftOnNode) -> Result<()> {
        let (name, number) = (&self.name, left.instances.len());
        line(&format!("node {name} is drained; instances left: {number}"))?;
        left.instances.iter().try_for_each(|left| {
            line(&format!(
                "{}\t{}\t{}\t{}\t{}",
                left.instance, left.name, left.owner, left.state, left.outcome
            ))
        })?;
        match left.volumes_and_snapshots {
            0 => Ok(()),
            number => line(&format!(
                "volumes and snapshots left: {number}; their data stays on this node"
            )),
        }
    }
}

/// Give up a node whose machine will not come back with its disks
///
/// Its instances are lost and cost nothing, and their owners can create them again, from backups or with empty disks;
/// `wharf node restore` does it for those with backups.
/// Refused while the node is in reach. The node stays drained; if the machine returns nevertheless, the
/// instances on it are removed.
#[derive(Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoseNode {
    /// The node's name
    name: String,
    /// Confirm that the data on the node is gone
    #[arg(long, required = true)]
    yes: bool,
}

impl Operation for LoseNode {
    const PATH: &'static str = "/nodes/lost";
    /// The server asks the node before.
    const TIMEOUT: Duration = Duration::from_secs(120);
    type Reply = Vec<LostLine>;

    async fn run(&self, operator: Operator<'_>) -> Result<Vec<LostLine>, Error> {
        operator.lose_node(&self.name).await
    }

    fn print(&self, lost: &Vec<LostLine>) -> Result<()> {
        let (name, number) = (&self.name, lost.len());
        line(&format!(
            "node {name} is given up; instances lost: {number}"
        ))?;
        lost.iter()
            .try_for_each(|lost| line(&format!("{}\t{}\t{}", lost.instance, lost.name, lost.owner)))
    }
}

/// Make the lost instances of a node again on other nodes, each from its newest backup
///
/// The oldest instance comes first, with its volumes from their newest backups. Those without a backup, room or quota stay lost, with the reason. Repeat the command
/// to go on with those that are still lost.
#[derive(Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RestoreNode {
    /// Name of the node that was lost
    name: String,
}

impl Operation for RestoreNode {
    const PATH: &'static str = "/nodes/restore";
    /// Each instance is a write.
    const TIMEOUT: Duration = Duration::from_secs(600);
    type Reply = Vec<RescuedLine>;

    async fn run(&self, operator: Operator<'_>) -> Result<Vec<RescuedLine>, Error> {
        operator.restore_node(&self.name).await
    }

    fn print(&self, lines: &Vec<RescuedLine>) -> Result<()> {
        let made = lines.iter().filter(|line| line.reason.is_none()).count();
        let (name, left) = (&self.name, lines.len() - made);
        line(&format!(
            "lost instances of node {name}: {made} are made again, {left} stay lost"
        ))?;
        lines.iter().try_for_each(|one| {
            let outcome = match &one.reason {
                Some(reason) => format!("stays lost: {reason}"),
                None => {
                    let at = or_none(one.backup.map(Timestamp::to_rfc3339));
                    match one.volumes_lost.as_slice() {
                        [] => format!("comes from its backup of {at}"),
                        lost => format!(
                            "comes from its backup of {at} without its volumes: {}",
                            lost.join(", ")
                        ),
                    }
                }
            };
            line(&format!(
                "{}\t{}\t{}\t{outcome}",
                one.instance, one.name, one.owner
            ))
        })
    }
}

/// Let a drained node take instances again
#[derive(Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResumeNode {
    /// The node's name
    name: String,
}

impl Operation for ResumeNode {
    const PATH: &'static str = "/nodes/resume";
    type Reply = ();

    async fn run(&self, operator: Operator<'_>) -> Result<(), Error> {
        operator.drain_node(&self.name, false).await.map(drop)
    }

    fn print(&self, (): &()) -> Result<()> {
        line(&format!("node {} takes instances again", self.name))
    }
}

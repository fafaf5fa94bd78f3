//! `wharf node`.

use super::remote::output::table;
use super::{ConfigFile, runtime};
use crate::check;
use crate::log;
use crate::operation::node::{AcceptNode, DrainNode, ListNodes, LoseNode};
use anyhow::Result;
use clap::{Args, Subcommand};
use wharf_config::Config;
use wharf_control::NodeLine;
use wharf_domain::driver::NodeHealth;
use wharf_domain::time::Timestamp;

/// List and drain nodes, accept an engine after an outage, and give up a node that has failed
#[derive(Args)]
pub struct Node {
    #[command(subcommand)]
    command: NodeCommand,
}

#[derive(Subcommand)]
enum NodeCommand {
    /// List nodes: name, engine, time of the last change of state, number of instances, claimed and
    /// configured vCPUs, RAM and disk, and state
    List {
        #[command(flatten)]
        config: ConfigFile,
    },
    /// Probe the engine of a node, and print its version, resources, features and the findings about it
    ///
    /// No server needs to run. The exit status is 1 when the engine cannot be used.
    Check {
        /// The node's name
        name: String,
        #[command(flatten)]
        config: ConfigFile,
    },
    /// Accept the engine of a node with an outage as the new one: absent instances have ended
    Accept {
        /// The node's name
        name: String,
        #[command(flatten)]
        config: ConfigFile,
    },
    /// Let a node take no new instances and no starts of stopped ones, and list the instances left on it
    ///
    /// Stopped instances move to other nodes of its cluster, and running ones whose owner permits it.
    /// Repeat the command to see which are left.
    Drain {
        /// The node's name
        name: String,
        #[command(flatten)]
        config: ConfigFile,
    },
    /// Give up a node whose machine will not come back with its disks
    ///
    /// Its instances are lost and cost nothing, and their owners can create them again with empty disks.
    /// Refused while the node is in reach. The node stays drained; if the machine returns nevertheless,
    /// the instances on it are removed.
    Lost {
        /// The node's name
        name: String,
        /// Confirm that the data on the node is gone
        #[arg(long, required = true)]
        yes: bool,
        #[command(flatten)]
        config: ConfigFile,
    },
    /// Let a drained node take instances again
    Resume {
        /// The node's name
        name: String,
        #[command(flatten)]
        config: ConfigFile,
    },
}

impl Node {
    pub fn run(self) -> Result<()> {
        match self.command {
            NodeCommand::List { config } => {
                let nodes = config.perform(ListNodes {})?;
                let rows: Vec<_> = nodes.iter().map(row).collect();
                table(
                    [
                        "NAME",
                        "ENGINE",
                        "SINCE",
                        "INSTANCES",
                        "VCPUS",
                        "MEM",
                        "DISK",
                        "STATE",
                    ],
                    &rows,
                )?;
                for node in &nodes {
                    for what in &node.kept_out {
                        println!("node {}: something outside Wharf holds {what}", node.name);
                    }
                }
            }
            NodeCommand::Check { name, config } => check(&name, &config.load()?)?,
            NodeCommand::Drain { name, config } => {
                let (node, drained) = (name.clone(), true);
                let left = config.perform(DrainNode { node, drained })?;
                println!("node {name} is drained; instances left: {}", left.len());
                for line in left {
                    println!(
                        "{}\t{}\t{}\t{}\t{}",
                        line.instance, line.name, line.owner, line.state, line.fate
                    );
                }
            }
            NodeCommand::Lost {
                name,
                yes: _,
                config,
            } => {
                let lost = config.perform(LoseNode { node: name.clone() })?;
                println!("node {name} is given up; instances lost: {}", lost.len());
                for line in lost {
                    println!("{}\t{}\t{}", line.instance, line.name, line.owner);
                }
            }
            NodeCommand::Resume { name, config } => {
                let (node, drained) = (name.clone(), false);
                config.perform(DrainNode { node, drained })?;
                println!("node {name} takes instances again");
            }
            NodeCommand::Accept { name, config } => {
                config.perform(AcceptNode { node: name.clone() })?;
                println!("node {name} is accepted; `wharf node list` shows its state");
            }
        }
        Ok(())
    }
}

fn check(name: &str, config: &Config) -> Result<()> {
    let _log = log::to_stderr(false);
    let (health, findings) = runtime()?.block_on(check::node(config, name))?;
    let NodeHealth {
        version,
        features,
        totals,
        gpus,
        ..
    } = health;
    println!("{name}: {version}");
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

/// The columns of a node; claimed and configured amounts.
fn row(node: &NodeLine) -> [String; 8] {
    let mut used = node.used.iter().zip(node.capacity);
    let mut amount = || match used.next() {
        Some((used, all)) => format!("{used}/{all}"),
        None => "-".to_owned(),
    };
    let (vcpus, mem, disk) = (amount(), amount(), amount());
    let state = match node.driver {
        None => "not configured",
        Some(_) => node.state.as_deref().unwrap_or("the server does not run"),
    };
    let marks = [(node.retired, "retired, "), (node.drained, "drained, ")];
    let marks = marks.iter().filter(|(is, _)| *is).map(|(_, mark)| *mark);
    let since = node.since.map(Timestamp::to_rfc3339);
    [
        node.name.clone(),
        node.driver.clone().unwrap_or_else(|| "-".to_owned()),
        since.unwrap_or_else(|| "-".to_owned()),
        node.instances.to_string(),
        vcpus,
        format!("{mem} GiB"),
        format!("{disk} GiB"),
        marks.chain([state]).collect(),
    ]
}

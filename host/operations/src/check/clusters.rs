//! Clusters within which instances cannot move, and those with private addresses that could be given twice.

use super::{ConfigFinding, Severity};
use std::collections::{BTreeMap, BTreeSet};
use wharf_config::{Config, NodeConfig};
use wharf_domain::ids::NodeId;
use wharf_instances::moves::neighbours;
use wharf_plugin::NodeDriver;
use wharf_subnets::overlap;

/// The findings about each cluster, at its first node with each driver.
pub fn shortcomings(config: &Config, drivers: &BTreeMap<NodeId, NodeDriver>) -> Vec<ConfigFinding> {
    let mut clusters: BTreeMap<&str, Vec<&NodeConfig>> = BTreeMap::new();
    for node in &config.node {
        if let Some(cluster) = &node.cluster {
            clusters.entry(cluster).or_default().push(node);
        }
    }
    let mut findings = Vec::new();
    for (cluster, nodes) in clusters {
        let mut seen = BTreeSet::new();
        let kinds: Vec<_> = nodes
            .iter()
            .filter(|node| seen.insert(&node.driver))
            .collect();
        let listed: Vec<_> = kinds.iter().map(|node| of_driver(node, &nodes)).collect();
        for node in &kinds {
            let id = NodeId(node.name.clone());
            let found = if kinds.len() > 1 {
                Some((
                    format!(
                        "the nodes of the cluster {cluster:?} have different drivers: {}; instances \
                         move between nodes with one driver only",
                        listed.join(", ")
                    ),
                    "name another cluster for the nodes of each driver",
                ))
            } else if neighbours(config, &id).is_empty() {
                Some((
                    format!("no other node is in the cluster {cluster:?}"),
                    "name the cluster of the nodes to which instances shall move, or remove it",
                ))
            } else if drivers.get(&id).is_some_and(|driver| !driver.moves()) {
                Some((
                    format!(
                        "the driver {:?} cannot move instances between {}",
                        node.driver,
                        names(nodes.iter())
                    ),
                    "remove it from these nodes, and delete the instances of a drained one",
                ))
            } else {
                None
            };
            findings.extend(found.map(|(problem, remedy)| ConfigFinding {
                severity: Severity::Warning,
                setting: format!("node.{}.cluster", node.name),
                problem,
                remedy: remedy.to_owned(),
            }));
        }
    }
    findings
}

/// The nodes with a range that is another one than that of a node in their cluster, and overlaps with it.
pub fn unequal_ranges(config: &Config) -> Vec<ConfigFinding> {
    let finding = |(n, node): (usize, &NodeConfig)| {
        let mut earlier = config.node.iter().take(n);
        let other = earlier.find(|other| {
            other.is_beside(node)
                && overlap(&other.lan_cidr, &node.lan_cidr)
                && !other.shares_lan(node)
        })?;
        let range = |node: &NodeConfig| {
            format!(
                "{} in subnets of /{}",
                node.lan_cidr, node.lan_subnet_prefix
            )
        };
        Some(ConfigFinding {
            severity: Severity::Warning,
            setting: format!("node.{}.lan_cidr", node.name),
            problem: format!(
                "{} overlaps with {} of the node {} in its cluster, and is not equal to it, so two \
                 instances of the cluster can have one address",
                range(node),
                range(other),
                other.name
            ),
            remedy: "set the same `lan_cidr` and `lan_subnet_prefix` on both nodes, which then share the \
                     addresses, or ranges that do not overlap"
                .to_owned(),
        })
    };
    config.node.iter().enumerate().filter_map(finding).collect()
}

/// The nodes that have the driver of one of them, in words.
fn of_driver(node: &NodeConfig, all: &[&NodeConfig]) -> String {
    let same = all.iter().filter(|other| other.driver == node.driver);
    format!("{} ({})", names(same), node.driver)
}

fn names<'a>(nodes: impl Iterator<Item = &'a &'a NodeConfig>) -> String {
    let names: Vec<_> = nodes.map(|node| node.name.as_str()).collect();
    names.join(" and ")
}

//! Findings about private ports that others may reach.

use super::{ConfigFinding, Severity};
use std::net::Ipv4Addr;
use wharf_config::{Config, NodeConfig};

/// The findings about all nodes.
pub fn shortcomings(config: &Config) -> Vec<ConfigFinding> {
    config.node.iter().filter_map(of).collect()
}

fn of(node: &NodeConfig) -> Option<ConfigFinding> {
    let problem = match node.private_address() {
        None if node.has_address_of_each_port() => {
            "private ports have addresses of `settings.publish_cidr`, as public ones do"
        }
        None => "private ports have the address of public ones",
        Some(address) if is_public(node, address) => "is the address of public ports too",
        Some(_) => return None,
    };
    let remedy = if node.has_address_of_each_port() {
        "let only this server reach the SSH ports of pages, by rules of the network"
    } else {
        "give an address of the node that only this server reaches"
    };
    Some(ConfigFinding {
        severity: Severity::Warning,
        setting: format!("node.{}.private_address", node.name),
        problem: problem.to_owned(),
        remedy: remedy.to_owned(),
    })
}

/// Whether a node publishes public ports at an address that others reach.
fn is_public(node: &NodeConfig, address: Ipv4Addr) -> bool {
    let public = node.settings.get("publish_address");
    let public = public.and_then(|public| public.as_str()?.parse::<Ipv4Addr>().ok());
    public == Some(address) && !address.is_loopback()
}

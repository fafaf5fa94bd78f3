//! Findings about private ports that others may reach.

use super::{ConfigFinding, Severity, Surveys};
use std::net::Ipv4Addr;
use wharf_config::{Config, NodeConfig};
use wharf_domain::driver::{PluginError, Surroundings};
use wharf_domain::ids::NodeId;
use wharf_instances::flavor_images::FlavorImages;

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

/// The findings about images without an SSH server, whose instances have no shell.
pub fn without_ssh(images: &[FlavorImages], surveys: &Surveys) -> Vec<ConfigFinding> {
    let private = images.iter().filter(|flavor| flavor.has_private_ssh);
    let private: Vec<_> = private
        .flat_map(|flavor| &flavor.images)
        .map(|image| &image.reference)
        .collect();
    let finding = |(node, found): (&NodeId, &Result<Surroundings, PluginError>)| {
        let mut without = found.as_ref().ok()?.images_without_ssh.clone();
        without.retain(|image| private.contains(&image));
        (!without.is_empty()).then(|| ConfigFinding {
            severity: Severity::Warning,
            setting: format!("node.{node}.endpoint"),
            problem: format!(
                "no SSH server is in {}, so users have no shell",
                without.join(", ")
            ),
            remedy: "make the images again, with the label `io.wharf.ssh`".to_owned(),
        })
    };
    surveys.iter().filter_map(finding).collect()
}

/// Whether a node publishes public ports at an address that others reach.
fn is_public(node: &NodeConfig, address: Ipv4Addr) -> bool {
    let public = node.settings.get("publish_address");
    let public = public.and_then(|public| public.as_str()?.parse::<Ipv4Addr>().ok());
    public == Some(address) && !address.is_loopback()
}

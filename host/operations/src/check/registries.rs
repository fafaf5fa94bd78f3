//! Findings about accounts at registries that nothing uses.

use super::{ConfigFinding, Severity};
use std::collections::BTreeMap;
use wharf_config::{Config, NodeConfig, RegistryConfig};
use wharf_domain::ids::NodeId;
use wharf_domain::image::Registry;
use wharf_plugin::NodeDriver;

/// The findings about all accounts.
pub fn unused(config: &Config, drivers: &BTreeMap<NodeId, NodeDriver>) -> Vec<ConfigFinding> {
    // Simulated engines have no driver in a check.
    let can_pull =
        drivers.is_empty() || drivers.values().any(|driver| driver.pulls_with_accounts());
    let find = |account: &RegistryConfig| {
        let (problem, remedy) = if !is_named(config, &account.registry()) {
            (
                "no `[[flavor]]` and no `image_prefix` of a node names an image there",
                "correct `host`, or remove the account unless `wharf images build` needs it",
            )
        } else if !can_pull {
            (
                "no node has a driver that pulls images with an account",
                "put the images on the nodes, and remove the account",
            )
        } else {
            return None;
        };
        Some(ConfigFinding {
            severity: Severity::Warning,
            setting: account.setting(),
            problem: problem.to_owned(),
            remedy: remedy.to_owned(),
        })
    };
    config.registry.iter().filter_map(find).collect()
}

/// Whether the configuration has a name of an image at a registry.
fn is_named(config: &Config, registry: &Registry) -> bool {
    let flavors = config.flavor.iter().map(|flavor| flavor.image.clone());
    let below = |node: &NodeConfig| {
        let prefix = node.settings.get("image_prefix")?.as_str()?;
        Some(format!("{prefix}image"))
    };
    let mut images = flavors.chain(config.node.iter().filter_map(below));
    images.any(|image| Registry::of(&image) == *registry)
}

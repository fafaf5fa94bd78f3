//! Findings about engines: their images, their limits on disks, and whether they respond.

use super::{ConfigFinding, Severity, Surveys};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use tokio::task::JoinSet;
use wharf_config::Config;
use wharf_domain::driver::{Features, PluginError, SnapshotKind, Surroundings};
use wharf_domain::ids::NodeId;
use wharf_plugin::NodeDriver;

/// The time in which a node must report its features.
const PROBE_LIMIT: Duration = Duration::from_secs(5);

/// A file of lxcfs on this machine.
const LXCFS: &str = "/var/lib/lxcfs/proc/meminfo";

/// The features of the nodes with these names, all at once; those that do not respond are left out.
pub async fn features(
    drivers: impl Iterator<Item = &NodeDriver>,
    surveys: &Surveys,
) -> BTreeMap<NodeId, Features> {
    let mut calls = JoinSet::new();
    for driver in drivers.filter(|driver| surveys.contains_key(driver.name())) {
        let driver = driver.clone();
        calls.spawn(async move {
            let probed = tokio::time::timeout(PROBE_LIMIT, driver.probe()).await;
            Some((driver.name().clone(), probed.ok()?.ok()?.features))
        });
    }
    calls.join_all().await.into_iter().flatten().collect()
}

/// The findings about each surveyed node. They name only settings that its driver has.
pub fn shortcomings(
    config: &Config,
    drivers: &BTreeMap<NodeId, NodeDriver>,
    surveys: &Surveys,
    features: &BTreeMap<NodeId, Features>,
    is_here: impl Fn(&Surroundings) -> bool,
) -> Vec<ConfigFinding> {
    let mut findings = Vec::new();
    for node in &config.node {
        let id = NodeId(node.name.clone());
        let (Some(driver), Some(survey)) = (drivers.get(&id), surveys.get(&id)) else {
            continue;
        };
        if let Err(PluginError::Invalid { field, message }) = survey
            && field.starts_with("settings.")
        {
            findings.push(ConfigFinding {
                severity: Severity::Error,
                setting: format!("node.{}.{field}", node.name),
                problem: message.clone(),
                remedy: format!("correct it, as the driver {} refuses it", node.driver),
            });
            continue;
        }
        // A remedy of the engine's own, and a further one with a setting that the driver may have.
        let mut warn = |problem: String, remedy: &str, setting: Option<(&str, &str)>| {
            let setting = setting.filter(|(key, _)| driver.has_setting(key));
            let (key, or) = match setting {
                Some((key, or)) => (format!("settings.{key}"), format!(", or {or}")),
                None => ("endpoint".to_owned(), String::new()),
            };
            findings.push(ConfigFinding {
                severity: Severity::Warning,
                setting: format!("node.{}.{key}", node.name),
                problem,
                remedy: format!("{remedy}{or}"),
            });
        };
        let is_off =
            |key: &str| node.settings.get(key).and_then(|value| value.as_str()) == Some("off");
        match survey {
            Err(why) => warn(
                format!("the engine does not answer, so the node is not checked: {why}"),
                "start the engine, or set its address",
                None,
            ),
            Ok(found) => {
                if !found.missing_images.is_empty() {
                    let prefix = "set the prefix of a registry that has them";
                    warn(
                        format!("the engine lacks {}", found.missing_images.join(", ")),
                        "make the images that you offer with `wharf images build`",
                        Some(("image_prefix", prefix)),
                    );
                }
                let shows_machine = match found.own_view {
                    Some(own) => !own,
                    None => {
                        driver.has_setting("lxcfs") && is_here(found) && !Path::new(LXCFS).exists()
                    }
                };
                if shows_machine && !is_off("lxcfs") {
                    let remedy = if driver.has_setting("lxcfs") {
                        "install and start lxcfs where the engine sees /var/lib/lxcfs"
                    } else {
                        "let the engine show instances their own size"
                    };
                    warn(
                        "`free`, `top` and `uptime` in instances show the node's size".to_owned(),
                        remedy,
                        Some(("lxcfs", "set \"off\" to accept it")),
                    );
                }
            }
        }
        let takes_none = |features: &Features| features.snapshots == SnapshotKind::None;
        if features.get(&id).is_some_and(takes_none) && driver.has_setting("project") {
            warn(
                "the node takes no snapshots".to_owned(),
                "use a pool of btrfs, and set `restricted.snapshots=allow` of a restricted project",
                None,
            );
        }
        if features
            .get(&id)
            .is_some_and(|features| !features.disk_limit)
            && !is_off("disk_limit")
        {
            warn(
                "the engine does not enforce disk sizes: one instance can fill the node's disk"
                    .to_owned(),
                "give the engine storage with limits, such as btrfs",
                Some(("disk_limit", "set \"off\" to accept it")),
            );
        }
    }
    findings
}

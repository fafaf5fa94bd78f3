//! Findings about a configuration and its nodes, for `wharf check` and the start of a server.

mod books;
mod clusters;
mod contents;
mod networks;
mod nodes;
mod private_ports;
mod registries;

pub use books::Books;
pub use networks::MachineNetworks;

use books::{contradictions, held_outside, unlimited};
use networks::conflicts;

use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};
use std::time::Duration;
use std::{io, iter};
use tokio::task::JoinSet;
use wharf_config::Config;
use wharf_domain::driver::{PluginError, Surroundings};
use wharf_domain::error::Error;
use wharf_domain::ids::NodeId;
use wharf_instances::App;
use wharf_instances::flavor_images::{by_engine, images};
use wharf_plugin::{NodeDriver, Plugins};

/// The time in which a node must show its surroundings. The start of a server waits for it.
const SURVEY_LIMIT: Duration = Duration::from_secs(3);

/// The weight of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Wharf does not start, or instances do not work.
    Error,
    /// Wharf starts, with a weaker guarantee.
    Warning,
}

impl Display for Severity {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

/// A conflict between the configuration and the nodes or instances.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConfigFinding {
    pub severity: Severity,
    /// The setting that is wrong or could be better.
    pub setting: String,
    pub problem: String,
    /// The way to put it right.
    pub remedy: String,
}

impl Display for ConfigFinding {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self {
            setting,
            problem,
            remedy,
            ..
        } = self;
        write!(f, "setting `{setting}`: {problem}; {remedy}")
    }
}

/// The surroundings of each node, or the reason for which they are unknown. A node whose driver cannot
/// see any is left out.
type Surveys = BTreeMap<NodeId, Result<Surroundings, PluginError>>;

/// Surveys nodes, all at once. `images` are references of blueprints for each kind of engine.
async fn survey(
    drivers: impl Iterator<Item = &NodeDriver>,
    images: &BTreeMap<String, Vec<String>>,
) -> Surveys {
    let mut calls = JoinSet::new();
    for driver in drivers {
        let driver = driver.clone();
        let images = images
            .get(driver.engine_kind())
            .cloned()
            .unwrap_or_default();
        calls.spawn(async move {
            let found = match tokio::time::timeout(SURVEY_LIMIT, driver.survey(&images)).await {
                Ok(found) => found,
                Err(_) => Err(PluginError::Unreachable(format!(
                    "no answer within {SURVEY_LIMIT:?}"
                ))),
            };
            (driver.name().clone(), found.transpose())
        });
    }
    let found = calls.join_all().await.into_iter();
    found
        .filter_map(|(node, found)| Some((node, found?)))
        .collect()
}

/// The findings about the networks of all nodes before a start.
pub struct NetworkFindings {
    /// Reservations, for the life of the server.
    pub machine: io::Result<MachineNetworks>,
    /// Conflicts on nodes without instances, which could not have any.
    pub fatal: Vec<ConfigFinding>,
}

/// Everything that was found.
#[derive(Debug, Default)]
pub struct CheckResult {
    /// Errors first.
    pub findings: Vec<ConfigFinding>,
    /// The nodes whose engines work with this machine's networks.
    pub on_machine: Vec<NodeId>,
}

/// Judges a configuration by the claims of its instances and by its nodes. Changes nothing.
pub async fn judge(
    config: &Config,
    books: &Books,
    plugins: &Plugins,
    drivers: &BTreeMap<NodeId, NodeDriver>,
) -> CheckResult {
    let mut findings = contradictions(config, books);
    findings.extend(held_outside(books));
    findings.extend(unlimited(books));
    let images = images(plugins, &config.login_user).await;
    let surveys = survey(drivers.values(), &by_engine(&images)).await;
    let features = nodes::features(drivers.values(), &surveys).await;
    findings.extend(clusters::shortcomings(config, drivers));
    findings.extend(clusters::unequal_ranges(config));
    findings.extend(private_ports::shortcomings(config));
    findings.extend(private_ports::without_ssh(&images, &surveys));
    findings.extend(registries::unused(config, drivers));
    findings.extend(contents::differences(config, &images, &surveys));
    let machine = MachineNetworks::read(config, &surveys, false).ok();
    let is_here = |found: &Surroundings| machine.as_ref().is_some_and(|here| here.has(found));
    findings.extend(nodes::shortcomings(
        config, drivers, &surveys, &features, is_here,
    ));
    let mut on_machine = Vec::new();
    if let Some(machine) = &machine {
        let used: BTreeSet<_> = books.claims.iter().map(|claim| &claim.node).collect();
        for (node, mut finding) in conflicts(config, &books.installation, &surveys, machine) {
            if used.contains(&node) {
                // The server starts, because the addresses of instances stay.
                finding.severity = Severity::Warning;
            }
            findings.push(finding);
        }
        let found = surveys
            .iter()
            .filter_map(|(node, found)| Some((node, found.as_ref().ok()?)));
        let found = found.filter(|(_, found)| machine.has(found));
        on_machine.extend(found.map(|(node, _)| node.clone()));
    }
    findings.sort_by_key(|finding| finding.severity);
    CheckResult {
        findings,
        on_machine,
    }
}

/// Compares the networks of a server's nodes with those of their machines and engines.
pub async fn networks(app: &App) -> Result<NetworkFindings, Error> {
    let books = Books::read(app.db())?;
    let used: BTreeSet<_> = books.claims.iter().map(|claim| &claim.node).collect();
    let config = app.config();
    let surveys = survey(app.drivers().values(), &BTreeMap::new()).await;
    let machine = MachineNetworks::read(&config, &surveys, true);
    let found = machine
        .as_ref()
        .map(|machine| conflicts(&config, app.installation(), &surveys, machine));
    let found = found.unwrap_or_default().into_iter();
    let fatal = found.filter(|(node, _)| !used.contains(node));
    Ok(NetworkFindings {
        fatal: fatal.map(|(_, finding)| finding).collect(),
        machine,
    })
}

/// Reserves the private network of one node for the life of the result, if the node is on this machine.
///
/// # Errors
/// When the kernel refuses the reservation.
pub async fn reserved(config: &Config, driver: &NodeDriver) -> io::Result<MachineNetworks> {
    let surveys = survey(iter::once(driver), &BTreeMap::new()).await;
    MachineNetworks::read(config, &surveys, true)
}

/// Judges the configuration of a server by its instances and nodes.
pub async fn judge_server(app: &App) -> Result<CheckResult, Error> {
    let books = Books::read(app.db())?;
    Ok(judge(&app.config(), &books, app.plugins(), app.drivers()).await)
}

//! The proofs of drivers, which `[plugins] require_proof` asks for.

use std::collections::BTreeMap;
use std::path::PathBuf;
use wharf_config::Config;
use wharf_domain::ids::NodeId;
use wharf_operations::check::{ConfigFinding, Severity};
use wharf_plugin::{LoadedDriver, NodeDriver, Plugins};
use wharf_sanity::{ProofReport, Unproven};

/// A driver without a proof where the configuration requires one.
#[derive(Debug, thiserror::Error)]
#[error(
    "setting `plugins.require_proof`: {driver} has no proof in {report}: {why}. Prove it with \
     `wharf plugin prove {component} --report {report}`, and the options that name a node and an image",
    report = report.display(),
    component = report.with_file_name(format!("{driver}.wasm")).display()
)]
pub struct WithoutProof {
    driver: String,
    report: PathBuf,
    why: Unproven,
}

/// Refuses a driver of `plugins_dir` without a report that proves it, if the configuration says so.
pub fn check(config: &Config, plugins: &Plugins) -> Result<(), WithoutProof> {
    for (driver, report) in drivers(config, plugins) {
        let proven = ProofReport::read(&report).and_then(|read| read.proves(&driver));
        proven.map_err(|why| WithoutProof {
            driver: driver.name,
            report,
            why,
        })?;
    }
    Ok(())
}

/// Finds nodes whose engine has another version than that of the required report.
pub async fn find_other_engines(
    config: &Config,
    plugins: &Plugins,
    nodes: &BTreeMap<NodeId, NodeDriver>,
) -> Vec<ConfigFinding> {
    let mut findings = Vec::new();
    for (driver, report) in drivers(config, plugins) {
        let Ok(report) = ProofReport::read(&report) else {
            continue;
        };
        let names = config.node.iter();
        let names = names.filter(|node| format!("driver-{}", node.driver) == driver.name);
        for name in names.map(|node| NodeId(node.name.clone())) {
            let Some(node) = nodes.get(&name) else {
                continue;
            };
            if let Ok(health) = node.probe().await
                && health.version != report.engine_version
            {
                findings.push(ConfigFinding {
                    severity: Severity::Warning,
                    setting: format!("node.{name}.driver"),
                    problem: format!(
                        "the engine is {}, and {} is proven on {}",
                        health.version, driver.name, report.engine_version
                    ),
                    remedy: format!("prove it with `wharf plugin prove` and `--node {name}`"),
                });
            }
        }
    }
    findings
}

/// The drivers that need a report, with its place.
fn drivers(config: &Config, plugins: &Plugins) -> Vec<(LoadedDriver, PathBuf)> {
    let directory = config.plugins_dir.as_deref();
    let Some(directory) = directory.filter(|_| config.plugins.require_proof) else {
        return Vec::new();
    };
    let needed = plugins.drivers().filter(|driver| !driver.is_embedded);
    let with_place = |driver: LoadedDriver| {
        let place = ProofReport::path(directory, &driver.name);
        (driver, place)
    };
    needed.map(with_place).collect()
}

//! Checks of a configuration and its nodes: all of them for `wharf check`, and those that a server needs.

mod pages;
mod shared_host;

pub use pages::certificate;

use crate::drivers::drivers_for_check;
use crate::http::AdminClient;
use crate::operation::Operation;
use crate::server::{self, StartError};
use crate::{file_permissions, http, node_rules, proofs};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use wharf_config::Config;
use wharf_db::Db;
use wharf_domain::driver::NodeHealth;
use wharf_domain::error::Error;
use wharf_domain::ids::NodeId;
use wharf_instances::App;
use wharf_operations::Operator;
use wharf_operations::check::{
    Books, CheckResult, ConfigFinding, MachineNetworks, NetworkFindings, Severity,
};

/// Probes one node, and judges its configuration. A server of this configuration may be running.
pub async fn node(config: &Config, name: &str) -> Result<(NodeHealth, Vec<ConfigFinding>)> {
    let mut only = config.clone();
    only.node.retain(|node| node.name == name);
    let Some(node) = only.node.first() else {
        let names: Vec<_> = config.node.iter().map(|node| node.name.as_str()).collect();
        bail!(
            "no node {name:?}; the configuration has {}",
            names.join(", ")
        );
    };
    if node.endpoint.starts_with("simulated:") {
        bail!("node {name}: a simulated engine belongs to the server's process; nothing to check");
    }
    let books = books(config).await?;
    let (plugins, drivers) = drivers_for_check(&only, &books.installation).await?;
    let Some(driver) = drivers.get(&NodeId(name.to_owned())) else {
        bail!("node {name}: no driver");
    };
    let health = driver
        .probe()
        .await
        .with_context(|| format!("node {name}"))?;
    let CheckResult { mut findings, .. } =
        wharf_operations::check::judge(config, &books, &plugins, &drivers).await;
    findings.extend(proofs::find_other_engines(&only, &plugins, &drivers).await);
    let own = format!("node.{name}.");
    findings.retain(|finding| finding.setting.starts_with(&own));
    Ok((health, findings))
}

/// Judges a configuration before a start. A server of this configuration may be running.
pub async fn all(config: &Config) -> Result<Vec<ConfigFinding>> {
    if config.data_dir.exists() {
        file_permissions::check(config)?;
    }
    let books = books(config).await?;
    // A simulated engine belongs to the server's own process.
    let mut asked = config.clone();
    asked
        .node
        .retain(|node| !node.endpoint.starts_with("simulated:"));
    let (plugins, drivers) = drivers_for_check(&asked, &books.installation).await?;
    let CheckResult {
        mut findings,
        on_machine,
    } = wharf_operations::check::judge(config, &books, &plugins, &drivers).await;
    findings.extend(node_rules::missing(&on_machine, true));
    findings.extend(proofs::find_other_engines(config, &plugins, &drivers).await);
    if http::is_plain_http(config, config.listen) {
        findings.push(ConfigFinding {
            severity: Severity::Warning,
            setting: "tls".to_owned(),
            problem: format!(
                "plain HTTP on {}, which other machines reach: API keys and passwords are readable on \
                 the way",
                config.listen
            ),
            remedy: "set `tls`, or listen on 127.0.0.1 behind a proxy with TLS".to_owned(),
        });
    }
    findings.extend(shared_host::find(config));
    findings.extend(pages::find(config, books.users));
    findings.extend(in_file(config));
    findings.sort_by_key(|finding| finding.severity);
    Ok(findings)
}

/// The findings about the settings of a file by themselves.
fn in_file(config: &Config) -> impl Iterator<Item = ConfigFinding> {
    let retired = config.retired().iter().map(|setting| ConfigFinding {
        severity: Severity::Warning,
        setting: setting.clone(),
        problem: "it has no effect any more".to_owned(),
        remedy: "remove it from the file".to_owned(),
    });
    unnamed_proxy(config).into_iter().chain(retired)
}

/// Warns if the clients of a proxy cannot be told apart. A proxy has the TLS of an https console.
fn unnamed_proxy(config: &Config) -> Option<ConfigFinding> {
    let is_behind_proxy = config.tls.is_none() && config.base_url().is_https();
    (is_behind_proxy && config.trusted_proxies.is_empty()).then(|| ConfigFinding {
        severity: Severity::Warning,
        setting: "trusted_proxies".to_owned(),
        problem: "`base_url` is that of a proxy, whose clients share one address: one of them can use up \
                  the attempts of all to sign in"
            .to_owned(),
        remedy: "name the proxy, such as trusted_proxies = [\"127.0.0.1\"], and let it append its \
                 client's address to X-Forwarded-For"
            .to_owned(),
    })
}

/// Reads the claims from the running server, or else from a copy of the database.
async fn books(config: &Config) -> Result<Books> {
    if let Some(server) = AdminClient::connect(&config.admin_socket()).await? {
        return Ok(server.perform(&ListClaims {}).await?);
    }
    if Db::bytes_in(&config.data_dir) == 0 {
        return Ok(Books::default());
    }
    Ok(Books::read(&server::inspect_db(config)?.db)?)
}

/// Lists the claims of all instances.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListClaims {}

impl Operation for ListClaims {
    const PATH: &'static str = "/claims/list";
    type Reply = Books;

    async fn run(&self, operator: Operator<'_>) -> Result<Books, Error> {
        let kept_out = operator.inventory.kept_out().into_iter();
        let unproven = operator.app.map(|app| app.nodes().all_unproven());
        let unproven = unproven.into_iter().flatten();
        Ok(Books {
            unproven_limits: unproven.map(|(node, why)| (node.0, why)).collect(),
            kept_out: kept_out
                .map(|kept| (kept.node.0.clone(), kept.to_string()))
                .collect(),
            ..Books::read(operator.db)?
        })
    }
}

/// Refuses a node without instances whose private network something else has. The result holds the
/// reservations of the nodes' networks.
pub async fn networks(app: &App) -> Result<Option<MachineNetworks>, StartError> {
    let NetworkFindings { machine, fatal } = wharf_operations::check::networks(app).await?;
    if !fatal.is_empty() {
        let lines: Vec<_> = fatal.iter().map(ToString::to_string).collect();
        return Err(StartError::Network(lines.join("\n")));
    }
    match machine {
        Ok(machine) => Ok(Some(machine)),
        Err(error) => {
            tracing::warn!(%error, "the private networks of the nodes are not reserved");
            Ok(None)
        }
    }
}

/// Logs the findings about a running server. It is not privileged, so it may not see the node's rules.
pub async fn log(app: &App) {
    let judged = match wharf_operations::check::judge_server(app).await {
        Ok(judged) => judged,
        Err(error) => {
            tracing::warn!(error = %error.chain(), "the configuration is not checked");
            return;
        }
    };
    let CheckResult {
        findings,
        on_machine,
    } = judged;
    let rules = tokio::task::spawn_blocking(move || node_rules::missing(&on_machine, false)).await;
    let config = app.config();
    let others = rules.unwrap_or_default().into_iter();
    let engines = proofs::find_other_engines(&config, app.plugins(), app.drivers()).await;
    let others = others.chain(in_file(&config)).chain(engines);
    for finding in findings.into_iter().chain(others) {
        let ConfigFinding {
            setting,
            problem,
            remedy,
            ..
        } = finding;
        tracing::warn!(setting, remedy, "{problem}");
    }
}

//! The sanity suite for drivers: the promises of `wit/v0.1/driver.wit`, checked on one node.
//!
//! The driver runs as in the server: its component, the request file of its kind of engine, the limits. So
//! a plugin needs no source to be checked.
//!
//! - [`subject`]: the driver with instances of its own.
//! - [`promises`]: one check for each promise, by subject.
//! - [`ProofReport`], [`JUnit`]: the outcomes, and what they hold for.

mod junit;
mod promises;
mod report;
mod subject;

pub use junit::JUnit;
pub use report::{ProofReport, Unproven};
pub use subject::{Drivers, SampleInstances, new_installation};

use anyhow::{Context, Result, bail};
use promises::{PROMISES, Verdict};
use serde::{Deserialize, Serialize};
use std::future::Future;
use std::pin::pin;
use std::time::Instant;
use subject::Subject;
use wharf_domain::driver::PluginError;

/// A promise that was checked.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckedPromise {
    pub promise: String,
    #[serde(flatten)]
    pub outcome: ProofOutcome,
    pub duration_ms: u64,
}

/// The outcome of a check.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "result", content = "reason", rename_all = "kebab-case")]
pub enum ProofOutcome {
    Kept,
    /// The driver does not make the promise, for this reason.
    NotApplicable(String),
    /// The driver breaks the promise, for this reason.
    Broken(String),
}

impl ProofOutcome {
    pub fn is_broken(&self) -> bool {
        matches!(self, Self::Broken(_))
    }

    pub fn is_not_applicable(&self) -> bool {
        matches!(self, Self::NotApplicable(_))
    }
}

/// Checks the promises whose names contain `filter`, and tells of the engine and of each promise at once. All
/// instances are removed at the end, or when `interrupted` completes, which is an error. Returns the version of
/// the engine too.
pub async fn prove(
    drivers: Drivers,
    sample: SampleInstances,
    filter: &str,
    interrupted: impl Future,
    mut tell: impl FnMut(&CheckedPromise),
) -> Result<(String, Vec<CheckedPromise>)> {
    let mut interrupted = pin!(interrupted);
    let begin = Instant::now();
    let mut all = Vec::new();
    let mut add = |promise: &str, begin: Instant, outcome| {
        let checked = CheckedPromise {
            promise: promise.to_owned(),
            outcome,
            duration_ms: u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX),
        };
        tell(&checked);
        all.push(checked);
    };
    let subject = match Subject::open(drivers, sample).await {
        Ok(subject) => subject,
        // It says nothing about the driver.
        Err(error @ PluginError::Unreachable(_)) => return Err(error).context("probe"),
        Err(error) => {
            let (probe, _) = PROMISES.first().context("no promise")?;
            add(probe, begin, ProofOutcome::Broken(error.to_string()));
            return Ok((String::new(), all));
        }
    };
    for (promise, check) in PROMISES.iter().filter(|(name, _)| name.contains(filter)) {
        let begin = Instant::now();
        let verdict = tokio::select! {
            verdict = check(&subject) => verdict,
            _ = &mut interrupted => {
                subject.remove_all().await.context("instances are left")?;
                bail!("interrupted");
            }
        };
        let outcome = match verdict {
            Ok(Verdict::Kept) => ProofOutcome::Kept,
            Ok(Verdict::NotApplicable(why)) => ProofOutcome::NotApplicable(why.to_owned()),
            Err(error) => {
                // Remains of this check would fail later ones.
                drop(subject.remove_all().await);
                ProofOutcome::Broken(format!("{error:#}"))
            }
        };
        add(promise, begin, outcome);
    }
    // A driver that cannot remove them has broken a promise.
    drop(subject.remove_all().await);
    Ok((subject.health.version, all))
}

//! The sanity suite for drivers: the promises of `wit/v0.1/driver.wit`, checked on one node.
//!
//! The driver runs as in the server: its component, the request file of its kind of engine, the limits. So
//! a plugin needs no source to be checked.
//!
//! - [`Subject`]: the driver with instances of its own.
//! - [`promises`]: one check for each promise, by subject.

mod promises;
mod subject;

pub use subject::{Drivers, Sample, Subject, new_installation};

use promises::{PROMISES, Verdict};
use std::time::{Duration, Instant};

/// A promise that was checked.
#[derive(Debug)]
pub struct Checked {
    /// The promise.
    pub promise: &'static str,
    pub outcome: Outcome,
    pub duration: Duration,
}

/// The outcome of a check.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    Kept,
    /// The driver does not make the promise, for this reason.
    NotApplicable(&'static str),
    /// The driver breaks the promise, for this reason.
    Broken(String),
}

/// Checks the promises whose names contain `filter`, tells of each at once, and removes all instances.
pub async fn prove(
    subject: &Subject,
    filter: &str,
    mut tell: impl FnMut(&Checked),
) -> anyhow::Result<Vec<Checked>> {
    let mut all = Vec::new();
    for (promise, check) in PROMISES.iter().filter(|(name, _)| name.contains(filter)) {
        let begin = Instant::now();
        let outcome = match check(subject).await {
            Ok(Verdict::Kept) => Outcome::Kept,
            Ok(Verdict::NotApplicable(why)) => Outcome::NotApplicable(why),
            Err(error) => Outcome::Broken(format!("{error:#}")),
        };
        let checked = Checked {
            promise,
            duration: begin.elapsed(),
            outcome,
        };
        tell(&checked);
        if matches!(checked.outcome, Outcome::Broken(_)) {
            // Remains of this check would fail later ones.
            drop(subject.remove_all().await);
        }
        all.push(checked);
    }
    subject.remove_all().await?;
    Ok(all)
}

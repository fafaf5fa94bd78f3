//! The report of a proof, and the facts that it holds for.

use crate::promises::PROMISES;
use crate::{CheckedPromise, ProofOutcome};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use wharf_plugin::LoadedDriver;

/// The version of the suite. It rises with each change after which a proven driver may fail.
const VERSION: u32 = 2;

/// The report of a proof.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProofReport {
    /// The version of the suite.
    suite: u32,
    /// The driver's name, such as `driver-cells`.
    pub driver: String,
    /// The hash of its component.
    component: String,
    /// The hash of the request file for its kind of engine.
    requests: String,
    /// The kind of engine.
    engine: String,
    /// The product and version of the engine.
    pub engine_version: String,
    /// The promises that were checked.
    pub promises: Vec<CheckedPromise>,
}

/// The absence of a proof.
#[derive(Debug, thiserror::Error)]
pub enum Unproven {
    /// There is no report.
    #[error("there is no report")]
    Missing,
    /// The report cannot be read.
    #[error("the report cannot be read: {0}")]
    Unreadable(String),
    /// The report is about something else.
    #[error("the report is of {what} {found}, not {needed}")]
    Other {
        what: &'static str,
        found: String,
        needed: String,
    },
    /// The driver broke a promise.
    #[error("the driver broke a promise, {promise:?}: {why}")]
    Broken { promise: String, why: String },
    /// A promise was not checked.
    #[error("the report is partial: it lacks the promise {0:?}")]
    Partial(&'static str),
}

impl ProofReport {
    /// The report about a driver, from the version of the engine and the checks.
    pub fn new(
        driver: LoadedDriver,
        engine_version: String,
        promises: Vec<CheckedPromise>,
    ) -> Self {
        Self {
            suite: VERSION,
            driver: driver.name,
            component: driver.component,
            requests: driver.requests,
            engine: driver.engine_kind,
            engine_version,
            promises,
        }
    }

    /// The place of the report of a plugin in `directory`.
    pub fn path(directory: &Path, driver: &str) -> PathBuf {
        directory.join(format!("{driver}.proof.json"))
    }

    /// Reads a report.
    pub fn read(path: &Path) -> Result<Self, Unproven> {
        let text = std::fs::read(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Unproven::Missing,
            _ => Unproven::Unreadable(error.to_string()),
        })?;
        serde_json::from_slice(&text).map_err(|error| Unproven::Unreadable(error.to_string()))
    }

    /// Whether the report proves a driver with its request file: every promise of this version of the suite
    /// was checked, and none is broken.
    pub fn proves(&self, driver: &LoadedDriver) -> Result<(), Unproven> {
        let same = |what, found: &str, needed: &str| {
            let other = || Unproven::Other {
                what,
                found: found.to_owned(),
                needed: needed.to_owned(),
            };
            (found == needed).then_some(()).ok_or_else(other)
        };
        same("a component with", &self.component, &driver.component)?;
        same("a request file with", &self.requests, &driver.requests)?;
        same("engines of the kind", &self.engine, &driver.engine_kind)?;
        let (found, needed) = (self.suite.to_string(), VERSION.to_string());
        same("the suite of version", &found, &needed)?;
        for checked in &self.promises {
            if let ProofOutcome::Broken(why) = &checked.outcome {
                return Err(Unproven::Broken {
                    promise: checked.promise.clone(),
                    why: why.clone(),
                });
            }
        }
        let is_checked = |name: &str| self.promises.iter().any(|one| one.promise == name);
        match PROMISES.iter().find(|(name, _)| !is_checked(name)) {
            Some((name, _)) => Err(Unproven::Partial(name)),
            None => Ok(()),
        }
    }
}

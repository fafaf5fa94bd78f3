//! A rule, the check that holds a service against it, and what came of it.

use super::context::Context;
use anyhow::Result;
use std::fmt;
use std::time::Duration;

/// Where a rule comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// The specification says so.
    Specification,
    /// The specification leaves it open, and this project decided it.
    Decision,
}

/// How a rule is checked.
pub type Run = dyn Fn(&Context<'_>) -> Result<()> + Send + Sync;

/// One rule and how it is checked.
pub struct Check {
    /// Section of the specification.
    pub section: &'static str,
    /// The rule.
    pub name: String,
    /// Where it comes from.
    pub basis: Basis,
    /// Needs the service to itself, because it uses up its capacity.
    pub alone: bool,
    /// Fails with what is wrong, or with [`Skip`].
    pub run: Box<Run>,
}

/// What came of a check.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Section of the specification.
    pub section: &'static str,
    /// The rule.
    pub name: String,
    /// Where it comes from.
    pub basis: Basis,
    /// Whether it holds.
    pub verdict: Verdict,
    /// How long it took to find out.
    pub time: Duration,
}

/// Whether a rule holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It does.
    Passed,
    /// It does not; why.
    Failed(String),
    /// It could not be checked; why.
    Skipped(String),
}

/// A rule of the specification.
pub fn spec(
    section: &'static str,
    name: impl Into<String>,
    run: impl Fn(&Context<'_>) -> Result<()> + Send + Sync + 'static,
) -> Check {
    Check {
        section,
        name: name.into(),
        basis: Basis::Specification,
        alone: false,
        run: Box::new(run),
    }
}

/// A decision on what a section of the specification leaves open.
pub fn decision(
    section: &'static str,
    name: impl Into<String>,
    run: impl Fn(&Context<'_>) -> Result<()> + Send + Sync + 'static,
) -> Check {
    Check {
        basis: Basis::Decision,
        ..spec(section, name, run)
    }
}

impl Check {
    /// Runs it when no other check runs.
    #[must_use]
    pub fn alone(self) -> Self {
        Self {
            alone: true,
            ..self
        }
    }
}

/// Why a rule cannot be checked here; goes through the same door as failures.
#[derive(Debug)]
pub struct Skip(pub String);

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Skip {}

/// Ends a check: it cannot be made here.
pub fn skip<T>(why: impl Into<String>) -> Result<T> {
    Err(Skip(why.into()).into())
}

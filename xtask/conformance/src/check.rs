//! A rule, its check, and the result.

use super::context::Context;
use anyhow::Result;
use std::fmt;
use std::time::Duration;

/// The origin of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// The specification states the rule.
    Specification,
    /// The specification leaves the question open, and this project decided it.
    Decision,
}

/// The function that checks a rule.
pub type Run = dyn Fn(&Context<'_>) -> Result<()> + Send + Sync;

/// A rule and its check.
pub struct Check {
    /// Section of the specification.
    pub section: &'static str,
    /// The rule.
    pub name: String,
    /// The origin of the rule.
    pub basis: Basis,
    /// Whether no other check may run meanwhile, because this check exhausts the capacity.
    pub exclusive: bool,
    /// Fails with a message, or with [`Skip`].
    pub run: Box<Run>,
}

/// The result of a check.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Section of the specification.
    pub section: &'static str,
    /// The rule.
    pub name: String,
    /// The origin of the rule.
    pub basis: Basis,
    /// Whether the rule holds.
    pub verdict: Verdict,
    /// The duration of the check.
    pub time: Duration,
}

/// The verdict on a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The rule holds.
    Passed,
    /// The rule is broken, with the reason.
    Failed(String),
    /// The rule could not be checked, with the reason.
    Skipped(String),
}

/// A check of a rule of the specification.
pub fn spec(
    section: &'static str,
    name: impl Into<String>,
    run: impl Fn(&Context<'_>) -> Result<()> + Send + Sync + 'static,
) -> Check {
    Check {
        section,
        name: name.into(),
        basis: Basis::Specification,
        exclusive: false,
        run: Box::new(run),
    }
}

/// A check of a decision on a question that the specification leaves open.
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
    /// Runs the check while no other check runs.
    #[must_use]
    pub fn exclusive(self) -> Self {
        Self {
            exclusive: true,
            ..self
        }
    }
}

/// The reason why a rule cannot be checked, returned as an error.
#[derive(Debug)]
pub struct Skip(pub String);

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Skip {}

/// Skips the rest of a check.
pub fn skip<T>(reason: impl Into<String>) -> Result<T> {
    Err(Skip(reason.into()).into())
}

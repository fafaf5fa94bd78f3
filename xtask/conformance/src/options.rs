//! The command-line options.

use super::context::Staged;
use super::session::Target;
use anyhow::{Context, Result};
use std::path::PathBuf;

/// The options of a run.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Options {
    /// Base URL of the service, such as https://wharf.example.org [default: a Wharf on the simulated
    /// engine, started for this run].
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// API key of a user. Prefer the variable WHARF_KEY: the arguments of a process are public.
    #[arg(long)]
    key: Option<String>,
    /// API key of another user, or the variable WHARF_OTHER_KEY.
    #[arg(long)]
    other_key: Option<String>,
    /// Write the results to this file as JUnit XML.
    #[arg(long, value_name = "FILE")]
    pub(super) junit: Option<PathBuf>,
    /// Check only rules whose section and name contain this text.
    #[arg(long, value_name = "TEXT")]
    pub(super) filter: Option<String>,
    /// Check only rules of the specification itself, without the decisions marked `+`.
    #[arg(long)]
    pub(super) specification_only: bool,
    /// Validate responses with this OpenAPI document (JSON) [default: the service's own].
    #[arg(long, value_name = "FILE")]
    pub(super) openapi: Option<PathBuf>,
    /// Deadline for a response, and for a change of an instance's state [default: 60].
    #[arg(long, value_name = "SECONDS")]
    pub(super) timeout_s: Option<u64>,
    /// Number of concurrent checks [default: 4].
    #[arg(long)]
    pub(super) jobs: Option<usize>,
    /// An instance of this name is set up to fail to provision.
    #[arg(long, value_name = "NAME")]
    failing_name: Option<String>,
    /// The node of an instance of this name is set up to be out of reach for stats and resize.
    #[arg(long, value_name = "NAME")]
    unreachable_name: Option<String>,
    /// An instance of this name is set up to end by itself.
    #[arg(long, value_name = "NAME")]
    dying_name: Option<String>,
    /// An instance of this name is set up not to start again once it was stopped.
    #[arg(long, value_name = "NAME")]
    unstartable_name: Option<String>,
    /// An instance of this name is set up to take a second or more to stop.
    #[arg(long, value_name = "NAME")]
    slow_name: Option<String>,
    /// A GPU model with at least one free GPU.
    #[arg(long, value_name = "MODEL")]
    gpu_model: Option<String>,
    /// At most 100 small VMs exhaust ports or addresses before vCPUs, RAM and disk.
    #[arg(long)]
    few_addresses: bool,
}

impl Options {
    /// Options that select the rules whose section and name contain a text.
    pub fn only(filter: &str) -> Self {
        Self {
            filter: Some(filter.to_owned()),
            ..Self::default()
        }
    }

    /// Sets the deadline.
    #[must_use]
    pub fn within_seconds(self, timeout: u64) -> Self {
        Self {
            timeout_s: Some(timeout),
            ..self
        }
    }

    /// The service of `--base-url`, if given.
    pub(super) fn target(&self) -> Result<Option<Target>> {
        let Some(base_url) = &self.base_url else {
            return Ok(None);
        };
        let key = self.key.clone().or_else(|| environment("WHARF_KEY"));
        Ok(Some(Target {
            base_url: base_url.clone(),
            key: key.context("an API key is needed: set WHARF_KEY, or use --key")?,
            other_key: self
                .other_key
                .clone()
                .or_else(|| environment("WHARF_OTHER_KEY")),
            staged: Staged {
                failing_name: self.failing_name.clone(),
                unreachable_name: self.unreachable_name.clone(),
                dying_name: self.dying_name.clone(),
                unstartable_name: self.unstartable_name.clone(),
                slow_name: self.slow_name.clone(),
                gpu_model: self.gpu_model.clone(),
                few_addresses: self.few_addresses,
            },
        }))
    }
}

fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

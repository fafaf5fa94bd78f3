//! The command line.

use super::context::Staged;
use super::session::Target;
use anyhow::{Context, Result};
use std::path::PathBuf;

/// What to check, and how.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Options {
    /// Base address of the service, such as https://wharf.example.org [default: Wharf on the
    /// simulated engine, started for this].
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// API key of a user. Better in the environment, as WHARF_KEY: arguments are for all to see.
    #[arg(long)]
    key: Option<String>,
    /// API key of another user (WHARF_OTHER_KEY).
    #[arg(long)]
    other_key: Option<String>,
    /// Write the outcomes there as JUnit XML.
    #[arg(long, value_name = "FILE")]
    pub(super) junit: Option<PathBuf>,
    /// Only rules whose section and name contain this.
    #[arg(long, value_name = "TEXT")]
    pub(super) filter: Option<String>,
    /// Only rules of the specification itself, none that decide what it leaves open.
    #[arg(long)]
    pub(super) specification_only: bool,
    /// Hold answers against this OpenAPI document (JSON) [default: the service's own].
    #[arg(long, value_name = "FILE")]
    pub(super) openapi: Option<PathBuf>,
    /// How long an instance may take to change its state, and an answer to come [default: 60].
    #[arg(long, value_name = "SECONDS")]
    pub(super) timeout_s: Option<u64>,
    /// Checks at the same time [default: 4].
    #[arg(long)]
    pub(super) jobs: Option<usize>,
    /// An instance of this name is set up to fail to provision.
    #[arg(long, value_name = "NAME")]
    failing_name: Option<String>,
    /// Usage and resize of an instance of this name are set up to find its host out of reach.
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
    /// A GPU model of which one is free.
    #[arg(long, value_name = "MODEL")]
    gpu_model: Option<String>,
    /// Small VMs, up to 100 of them, use up ports or addresses before vCPUs, RAM and disk.
    #[arg(long)]
    few_addresses: bool,
}

impl Options {
    /// Only rules whose section and name contain this.
    pub fn only(filter: &str) -> Self {
        Self {
            filter: Some(filter.to_owned()),
            ..Self::default()
        }
    }

    /// With another patience.
    #[must_use]
    pub fn within_seconds(self, timeout: u64) -> Self {
        Self {
            timeout_s: Some(timeout),
            ..self
        }
    }

    /// The service, if one is named.
    pub(super) fn target(&self) -> Result<Option<Target>> {
        let Some(base_url) = &self.base_url else {
            return Ok(None);
        };
        let key = self.key.clone().or_else(|| environment("WHARF_KEY"));
        Ok(Some(Target {
            base_url: base_url.clone(),
            key: key.context("an API key is needed: --key or the environment's WHARF_KEY")?,
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

//! `wharf clock`.

use super::operator::{Perform, operator_commands};
use crate::operation::Operation;
use anyhow::Result;
use clap::Args;
use serde::{Deserialize, Serialize};
use wharf_cli::output::line;
use wharf_domain::error::Error;
use wharf_ground::clock::ClockState;
use wharf_operations::Operator;

operator_commands! {
    pub enum ClockCommand {
        Show(Perform<ShowClock>),
        Adopt(Perform<AdoptClock>),
    }
}

/// Show Wharf's time and the system's, and whether Wharf follows the system's
#[derive(Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShowClock {}

impl Operation for ShowClock {
    const PATH: &'static str = "/clock/show";
    type Reply = ClockState;

    async fn run(&self, operator: Operator<'_>) -> Result<ClockState, Error> {
        Ok(operator.clock.state())
    }

    fn print(&self, state: &ClockState) -> Result<()> {
        print(state)
    }
}

/// Set Wharf's time to the system's clock, which must be right: running instances are billed for the time
/// that this adds
#[derive(Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdoptClock {}

impl Operation for AdoptClock {
    const PATH: &'static str = "/clock/adopt";
    type Reply = ClockState;

    async fn run(&self, operator: Operator<'_>) -> Result<ClockState, Error> {
        operator.clock.adopt(operator.db).await
    }

    fn print(&self, state: &ClockState) -> Result<()> {
        print(state)
    }
}

fn print(state: &ClockState) -> Result<()> {
    let follows = if state.refused { "refused" } else { "followed" };
    line(&format!("wharf\t{}", state.now.to_rfc3339()))?;
    line(&format!("system\t{}\t{follows}", state.system.to_rfc3339()))
}

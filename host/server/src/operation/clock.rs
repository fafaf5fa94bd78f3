//! Wharf's time and the system's clock.

use super::Operation;
use serde::{Deserialize, Serialize};
use wharf_control::{ClockState, Operator};
use wharf_domain::error::Error;

/// Shows both.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShowClock {}

impl Operation for ShowClock {
    const PATH: &'static str = "/clock/show";
    type Reply = ClockState;

    async fn run(self, operator: Operator<'_>) -> Result<Self::Reply, Error> {
        Ok(operator.clock.state())
    }
}

/// Sets Wharf's time to the system's clock.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdoptClock {}

impl Operation for AdoptClock {
    const PATH: &'static str = "/clock/adopt";
    type Reply = ClockState;

    async fn run(self, operator: Operator<'_>) -> Result<Self::Reply, Error> {
        operator.adopt_clock().await
    }
}

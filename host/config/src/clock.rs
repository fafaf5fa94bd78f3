//! `[clock]`: how far Wharf's time follows the system's clock.

use serde::Deserialize;

/// Changes of the system's clock that Wharf follows by itself.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClockConfig {
    /// Longest time in days between two boots that Wharf believes. Default 30.
    pub max_gap_days: u64,
}

impl Default for ClockConfig {
    fn default() -> Self {
        Self { max_gap_days: 30 }
    }
}

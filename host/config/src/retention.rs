//! `[retention]`: how long records are kept.

use serde::Deserialize;

/// How long the records of purged instances and of changes are kept. Events and ledgers of other
/// instances are always kept.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RetentionConfig {
    /// Time in days from the last event until the events are removed. Default 90.
    pub events_days: u32,
    /// Whole months before the present one for which ledgers are kept. Default 13. Earlier ledgers are
    /// replaced by the costs of their months.
    pub ledger_months: u32,
    /// Time in days for which the audit log is kept. Default 400; 0 keeps it forever.
    pub audit_days: u32,
}

impl Default for RetentionConfig {
    fn default() -> Self {
        Self {
            events_days: 90,
            ledger_months: 13,
            audit_days: 400,
        }
    }
}

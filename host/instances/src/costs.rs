//! The costs of a user's instances by month, of open and of closed ledgers.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use wharf_db::Read;
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::ids::{InstanceId, UserId};
use wharf_domain::ledger::{LedgerCost, LedgerEntry, by_month};
use wharf_domain::month::Month;
use wharf_domain::time::{Timestamp, rfc3339};

/// The cost of one instance in a time span.
#[derive(Debug, Default)]
pub struct InstanceCost {
    pub months: BTreeMap<Month, LedgerCost>,
    /// The corrections that are known one by one.
    pub corrections: Vec<CorrectionLine>,
    /// Nano-USD per hour by the last ledger entry.
    pub hourly: u128,
}

impl InstanceCost {
    pub fn total(&self) -> LedgerCost {
        let parts = self.months.values();
        parts.fold(LedgerCost::default(), |sum, part| sum.plus(*part))
    }

    fn add(&mut self, month: Month, cost: LedgerCost) {
        let sum = self.months.entry(month).or_default();
        *sum = sum.plus(cost);
    }
}

/// A correction of a bill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CorrectionLine {
    #[serde(with = "rfc3339")]
    pub at: Timestamp,
    pub nano_usd: i128,
    pub reason: String,
}

/// Returns the costs of a user's instances in `[from, to)`, oldest instance first. Closed ledgers are
/// known for whole months only.
pub fn costs(
    rows: &impl Read,
    user: UserId,
    from: Timestamp,
    to: Timestamp,
) -> Result<BTreeMap<InstanceId, InstanceCost>, Error> {
    let mut costs: BTreeMap<InstanceId, InstanceCost> = BTreeMap::new();
    let mut cut = None;
    rows.each_closed(user, |month, id, cost| {
        let (start, end) = (month.start(), month.next().start());
        if to <= start || end <= from {
            return;
        }
        if start < from || to < end {
            cut = Some((month, if start < from { "from" } else { "to" }));
        }
        costs.entry(id).or_default().add(month, cost);
    })?;
    if let Some((month, end)) = cut {
        return Err(whole_months(month, end).into());
    }
    for id in rows.recorded_of(user)? {
        let (entries, corrections) = (rows.ledger(id)?, rows.corrections(id)?);
        let cost = costs.entry(id).or_default();
        cost.hourly = entries.last().map_or(0, LedgerEntry::hourly);
        for (month, part) in by_month(&entries, &corrections, from, to) {
            cost.add(month, part);
        }
        let within = corrections
            .into_iter()
            .filter(|c| from <= c.at && c.at < to);
        cost.corrections.extend(within.map(|c| CorrectionLine {
            at: c.at,
            nano_usd: c.nano_usd,
            reason: c.reason,
        }));
    }
    Ok(costs)
}

fn whole_months(month: Month, end: &str) -> FieldErrors {
    let first = month.start().to_rfc3339();
    let next = month.next().start().to_rfc3339();
    let message = format!("must be {first} or {next}: the ledger of this month was closed");
    FieldErrors::one(end, message)
}

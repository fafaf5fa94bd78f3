//! Corrections by the operator, and the sums that remain of a closed ledger.

use super::{LedgerEntry, MILLIS_PER_HOUR, weight};
use crate::ids::UserId;
use crate::month::Month;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// An amount that the operator added to the bill of an instance, or took off it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BillCorrection {
    pub at: Timestamp,
    pub owner: UserId,
    /// Negative if it is in the user's favour.
    pub nano_usd: i128,
    pub reason: String,
}

/// The cost of an instance, or of one month of it. Parts are added before the division, so that a
/// closed ledger costs exactly as much as an open one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LedgerCost {
    /// Nano-USD per hour, times milliseconds.
    pub weight: u128,
    /// Sum of the corrections in nano-USD.
    pub corrections: i128,
}

impl LedgerCost {
    /// Returns the cost within `[from, to)`, of all entries and corrections of an instance.
    pub fn of(
        entries: &[LedgerEntry],
        corrections: &[BillCorrection],
        from: Timestamp,
        to: Timestamp,
    ) -> Self {
        let within = corrections.iter().filter(|c| from <= c.at && c.at < to);
        Self {
            weight: weight(entries, from, to),
            corrections: within.map(|c| c.nano_usd).sum(),
        }
    }

    /// Adds another part of the cost.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            weight: self.weight.saturating_add(other.weight),
            corrections: self.corrections.saturating_add(other.corrections),
        }
    }

    /// Returns the amount in nano-USD.
    pub fn nano_usd(self) -> i128 {
        let billed = i128::try_from(self.weight / MILLIS_PER_HOUR).unwrap_or(i128::MAX);
        billed.saturating_add(self.corrections)
    }
}

/// Returns the costs of the months of a ledger that ended. Months without cost are left out.
pub fn months(entries: &[LedgerEntry], corrections: &[BillCorrection]) -> Vec<(Month, LedgerCost)> {
    let end = times(entries, corrections).max();
    let end = end.map_or(Timestamp::default(), |last| Month::of(last).next().start());
    by_month(entries, corrections, Timestamp(i64::MIN), end)
}

/// Returns the costs within `[from, to)` by month. Months without cost are left out.
pub fn by_month(
    entries: &[LedgerEntry],
    corrections: &[BillCorrection],
    from: Timestamp,
    to: Timestamp,
) -> Vec<(Month, LedgerCost)> {
    let Some(first) = times(entries, corrections).min() else {
        return Vec::new();
    };
    let mut start = from.max(first);
    let mut costs = Vec::new();
    while start < to {
        let month = Month::of(start);
        let next = month.next().start();
        let end = if next < to { next } else { to };
        let cost = LedgerCost::of(entries, corrections, start, end);
        if cost != LedgerCost::default() {
            costs.push((month, cost));
        }
        start = next;
    }
    costs
}

fn times(
    entries: &[LedgerEntry],
    corrections: &[BillCorrection],
) -> impl Iterator<Item = Timestamp> {
    let entries = entries.iter().map(|entry| entry.at);
    entries.chain(corrections.iter().map(|correction| correction.at))
}

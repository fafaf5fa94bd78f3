//! Billing. Each instance has an append-only list of entries that apply until the next entry.
//! Sums over a time span use integers.

mod closed;

pub use closed::{BillCorrection, LedgerCost, by_month, months};

use crate::capacity::Size;
use crate::ids::{InstanceId, UserId};
use crate::money::Rates;
use crate::state::Billed;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// A ledger entry: the billed parts, size and rates from `at` until the instance's next entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerEntry {
    pub instance: InstanceId,
    pub owner: UserId,
    pub at: Timestamp,
    pub billed: Billed,
    pub size: Size,
    pub n_gpus: u32,
    pub rates: Rates,
}

impl LedgerEntry {
    /// Returns the cost in nano-USD per hour.
    pub fn hourly(&self) -> u128 {
        hourly(self.rates, self.size, self.n_gpus, self.billed)
    }
}

/// Returns the cost of the billed parts of an instance in nano-USD per hour.
pub fn hourly(rates: Rates, size: Size, n_gpus: u32, billed: Billed) -> u128 {
    let part = |rate: u64, units: u32| u128::from(rate) * u128::from(units);
    let compute = part(rates.vcpu.0, size.n_vcpus)
        + part(rates.mem.0, size.mem_gib)
        + part(rates.gpu.0, n_gpus);
    let storage = part(rates.disk.0, size.disk_size_gib);
    u128::from(billed.compute) * compute + u128::from(billed.storage) * storage
}

const MILLIS_PER_HOUR: u128 = 3_600_000;

/// Returns the cost of an instance in `[from, to)`, in nano-USD per hour times milliseconds.
///
/// `entries` are all entries of the instance in order.
fn weight(entries: &[LedgerEntry], from: Timestamp, to: Timestamp) -> u128 {
    let ends = entries.iter().skip(1).map(|e| e.at).chain([to]);
    entries
        .iter()
        .zip(ends)
        .map(|(entry, end)| {
            let end = if end < to { end } else { to };
            let millis = end.millis_since(entry.at.max(from));
            entry.hourly() * u128::from(millis)
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::{BillCorrection, LedgerCost, LedgerEntry, by_month, months};
    use crate::capacity::Size;
    use crate::ids::{InstanceId, UserId};
    use crate::money::{Rate, Rates};
    use crate::state::Billed;
    use crate::time::Timestamp;

    fn cost(entries: &[LedgerEntry], from: Timestamp, to: Timestamp) -> i128 {
        LedgerCost::of(entries, &[], from, to).nano_usd()
    }

    fn entry(at: i64, compute: bool, storage: bool) -> LedgerEntry {
        LedgerEntry {
            instance: InstanceId(uuid::Uuid::nil()),
            owner: UserId(1),
            at: Timestamp(at),
            billed: Billed { compute, storage },
            size: Size {
                n_vcpus: 2,
                mem_gib: 4,
                disk_size_gib: 10,
            },
            n_gpus: 0,
            rates: Rates {
                vcpu: Rate(10),
                mem: Rate(5),
                disk: Rate(1),
                gpu: Rate(100),
            },
        }
    }

    #[test]
    fn splits_at_changes_and_at_the_ends_of_the_span() {
        let hour = 3_600_000;
        let entries = [
            entry(0, true, true),
            entry(hour, false, true),
            entry(3 * hour, false, false),
        ];
        let all = cost(&entries, Timestamp(0), Timestamp(10 * hour));
        assert_eq!(all, (20 + 20 + 10) + 2 * 10);
        let halves = cost(&entries, Timestamp(0), Timestamp(hour / 2))
            + cost(&entries, Timestamp(hour / 2), Timestamp(10 * hour));
        assert_eq!(all, halves);
        assert_eq!(cost(&entries, Timestamp(5), Timestamp(5)), 0);
    }

    #[test]
    fn the_sums_of_months_are_exact() {
        let at = |text: &str| Timestamp::parse(text).unwrap();
        let entries = [
            entry(at("2026-01-30T12:34:56.789Z").0, true, true),
            entry(at("2026-02-10T00:00:00.001Z").0, false, true),
            entry(at("2026-04-01T00:00:00.333Z").0, false, false),
        ];
        let corrections = [BillCorrection {
            at: at("2026-05-02"),
            owner: UserId(1),
            nano_usd: -7,
            reason: String::new(),
        }];
        let months = months(&entries, &corrections);
        assert_eq!(months.len(), 5);
        let closed = months
            .iter()
            .fold(LedgerCost::default(), |sum, (_, cost)| sum.plus(*cost));
        let open = LedgerCost::of(&entries, &corrections, Timestamp(0), at("2030-01-01"));
        assert_eq!(closed, open);
        assert!(closed.nano_usd() > 0);
        // The last month of a part of the time ends with it.
        let (from, to) = (at("2026-02-09"), at("2026-03-02"));
        let part = by_month(&entries, &corrections, from, to);
        let sum = part
            .iter()
            .fold(LedgerCost::default(), |sum, (_, c)| sum.plus(*c));
        assert_eq!(sum, LedgerCost::of(&entries, &corrections, from, to));
        assert_eq!(part.len(), 2);
    }
}

//! The budget of each user for rows that outlive their object: records of the audit log, events, ledger
//! entries, keys, and idempotency keys. It is regained evenly over a day. It is in memory, so that a start
//! begins with full budgets.

use super::changes::{Change, Changes};
use super::tables::{EVENTS, LEDGER};
use std::collections::{BTreeSet, HashMap};
use wharf_domain::error::Error;
use wharf_domain::ids::UserId;
use wharf_domain::time::Timestamp;

/// A day in milliseconds, and the cost of one row: `per_day` of it are regained in each millisecond.
const DAY: u64 = 24 * 3_600_000;

/// The budgets of all users.
#[derive(Default)]
pub struct Budget {
    /// Rows of a full budget; 0 for no limit.
    per_day: u32,
    spent: HashMap<UserId, Spent>,
    /// The rows of the batch under way.
    pending: HashMap<UserId, u64>,
}

#[derive(Clone, Copy)]
struct Spent {
    cost: u64,
    at: Timestamp,
}

impl Budget {
    /// Full budgets of this number of rows.
    pub fn new(per_day: u32) -> Self {
        Self {
            per_day,
            ..Self::default()
        }
    }

    /// Fails if a user whose rows are changed has less than a row of the budget left. A single write may go beyond it.
    pub fn admit(&self, changes: &Changes, now: Timestamp) -> Result<(), Error> {
        let full = self.full();
        let mut users = BTreeSet::new();
        users.extend(changes.0.iter().filter_map(concerned));
        let most = users.iter().map(|user| self.cost(*user, now)).max();
        match most {
            Some(cost) if self.per_day > 0 && cost.saturating_add(DAY) > full => {
                let ms = cost
                    .saturating_add(DAY)
                    .saturating_sub(full)
                    .div_ceil(self.per_day.into());
                Err(Error::TooManyRecords {
                    retry_after_s: ms.div_ceil(1000),
                    per_day: self.per_day,
                })
            }
            _ => Ok(()),
        }
    }

    /// Notes the rows of a write, whether it could be refused or not.
    pub fn note(&mut self, changes: &Changes) {
        for user in changes.0.iter().filter_map(outliving) {
            *self.pending.entry(user).or_default() += 1;
        }
    }

    /// Forgets the rows of a batch that was not committed.
    pub fn undo(&mut self) {
        self.pending.clear();
    }

    /// Takes the rows of a batch that is committed.
    pub fn keep(&mut self, now: Timestamp) {
        let most = 2 * self.full();
        let users: Vec<_> = self.pending.keys().copied().collect();
        for user in users {
            // Writes that are never refused delay a user's other ones by at most a day.
            let cost = self.cost(user, now).min(most);
            self.spent.insert(user, Spent { cost, at: now });
        }
        self.pending.clear();
    }

    fn full(&self) -> u64 {
        u64::from(self.per_day) * DAY
    }

    fn cost(&self, user: UserId, now: Timestamp) -> u64 {
        let kept = self.spent.get(&user).map_or(0, |spent| {
            let elapsed = u64::try_from(now.0.saturating_sub(spent.at.0)).unwrap_or_default();
            let regained = elapsed.saturating_mul(self.per_day.into());
            spent.cost.saturating_sub(regained)
        });
        let pending = self.pending.get(&user).copied().unwrap_or_default();
        kept.saturating_add(pending.saturating_mul(DAY))
    }
}

/// The user of a row that outlives its object.
fn outliving(change: &Change) -> Option<UserId> {
    match change {
        Change::Audit(record) => record.owner,
        Change::Event(number, row) => EVENTS.user(&row.event.instance, number, row),
        Change::Entry(number, entry) => LEDGER.user(&entry.instance, number, entry),
        Change::Row(row) => row.user(),
        _ => None,
    }
}

/// The user whose budget a change needs. A changed intent makes the reconciler leave rows later.
fn concerned(change: &Change) -> Option<UserId> {
    match change {
        Change::Instance(instance) => Some(instance.owner),
        other => outliving(other),
    }
}

#[cfg(test)]
mod tests {
    use super::Budget;
    use crate::Changes;
    use wharf_domain::audit::{AuditRecord, Origin};
    use wharf_domain::error::Error;
    use wharf_domain::ids::UserId;
    use wharf_domain::time::Timestamp;

    fn records(user: u64, number: usize) -> Changes {
        let record = AuditRecord {
            at: Timestamp(0),
            origin: Origin::operator(),
            operation: "test".to_owned(),
            owner: Some(UserId(user)),
            instance: None,
            subject: None,
            result: String::new(),
        };
        let records = std::iter::repeat_n(record, number);
        records.fold(Changes::none(), Changes::audit)
    }

    fn wait(budget: &Budget, user: u64, at: i64) -> Option<u64> {
        match budget.admit(&records(user, 1), Timestamp(at)) {
            Ok(()) => None,
            Err(Error::TooManyRecords { retry_after_s, .. }) => Some(retry_after_s),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn a_budget_is_of_one_user_and_is_regained_evenly_over_a_day() {
        let mut budget = Budget::new(24);
        budget.note(&records(1, 24));
        assert_eq!(wait(&budget, 1, 0), Some(3600));
        budget.undo();
        assert_eq!(wait(&budget, 1, 0), None);
        budget.note(&records(1, 24));
        budget.keep(Timestamp(0));
        assert_eq!(wait(&budget, 1, 0), Some(3600));
        assert_eq!(wait(&budget, 1, 1_800_000), Some(1800));
        assert_eq!(wait(&budget, 1, 3_600_000), None);
        assert_eq!(wait(&budget, 2, 0), None);
        // A clock that is set back takes nothing away.
        assert_eq!(wait(&budget, 1, -5), Some(3600));
    }

    #[test]
    fn what_is_never_refused_costs_a_day_at_most_and_zero_is_no_limit() {
        let mut budget = Budget::new(24);
        budget.note(&records(1, 1_000));
        budget.keep(Timestamp(0));
        assert_eq!(wait(&budget, 1, 0), Some(25 * 3600));
        let mut unlimited = Budget::new(0);
        unlimited.note(&records(1, 1_000));
        unlimited.keep(Timestamp(0));
        assert_eq!(wait(&unlimited, 1, 0), None);
    }
}

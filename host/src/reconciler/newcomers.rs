//! New instances that wait for their turn. While requests come so fast that they share commits, the
//! cores belong to them: what is accepted meanwhile is made bit by bit, and the rest in quiet, no
//! faster than cores can work, so that the next crowd finds them free again. Nobody notices a start
//! that is so much later; everybody would an answer.

use crate::domain::ids::InstanceId;
use std::collections::{HashSet, VecDeque};
use std::time::Duration;

/// Time between two turns.
pub const TURN: Duration = Duration::from_millis(1);
/// How many begin in one while requests come fast. There is always some progress: more than an engine
/// makes.
const FEW: usize = 1;
/// And in quiet, for each core.
const PER_CORE: usize = 4;

/// Them, oldest first.
#[derive(Debug)]
pub struct Newcomers {
    order: VecDeque<InstanceId>,
    ids: HashSet<InstanceId>,
    in_quiet: usize,
}

impl Newcomers {
    /// None yet.
    pub fn new(cores: usize) -> Self {
        Self {
            order: VecDeque::new(),
            ids: HashSet::new(),
            in_quiet: PER_CORE * cores,
        }
    }

    /// One more.
    pub fn add(&mut self, id: InstanceId) {
        if self.ids.insert(id) {
            self.order.push_back(id);
        }
    }

    /// Whether this one waits.
    pub fn has(&self, id: InstanceId) -> bool {
        self.ids.contains(&id)
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Those whose turn it is: a few while there is a crowd of requests.
    pub fn due(&mut self, crowded: bool) -> Vec<InstanceId> {
        let count = if crowded { FEW } else { self.in_quiet };
        let due: Vec<_> = self.order.drain(..count.min(self.order.len())).collect();
        for id in &due {
            self.ids.remove(id);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::{FEW, Newcomers, PER_CORE};
    use crate::domain::ids::InstanceId;
    use uuid::Uuid;

    #[test]
    fn a_few_of_a_crowd_and_more_in_quiet_in_order() {
        let quiet = 2 * FEW..2 * FEW + 2 * PER_CORE;
        let ids: Vec<_> = (0..quiet.end + 1)
            .map(|n| InstanceId(Uuid::from_u128(n as u128)))
            .collect();
        let mut newcomers = Newcomers::new(2);
        for id in ids.iter().chain(&ids) {
            newcomers.add(*id);
        }
        assert_eq!(newcomers.due(true), ids[..FEW]);
        assert!(!newcomers.has(ids[0]) && newcomers.has(ids[FEW]));
        assert_eq!(newcomers.due(true), ids[FEW..2 * FEW]);
        assert_eq!(newcomers.due(false), ids[quiet.clone()]);
        assert_eq!(newcomers.due(false), ids[quiet.end..]);
        assert!(newcomers.is_empty() && newcomers.due(true).is_empty());
    }
}

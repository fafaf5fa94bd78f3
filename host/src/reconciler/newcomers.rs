//! New instances that wait for their turn. While requests come so fast that they share commits, the
//! cores belong to them: what is accepted meanwhile is made bit by bit, and all of it as soon as there
//! is quiet. Nobody notices a start that is so much later; everybody would an answer.

use crate::domain::ids::InstanceId;
use std::collections::{HashSet, VecDeque};
use std::time::Duration;

/// Time between two turns.
pub const TURN: Duration = Duration::from_millis(1);
/// How many begin in one while requests come fast. There is always some progress: more than an engine
/// makes.
const FEW: usize = 1;

/// Them, oldest first.
#[derive(Debug, Default)]
pub struct Newcomers {
    order: VecDeque<InstanceId>,
    ids: HashSet<InstanceId>,
}

impl Newcomers {
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

    /// Those whose turn it is: all, or a few while there is a crowd of requests.
    pub fn due(&mut self, crowded: bool) -> Vec<InstanceId> {
        let waiting = self.order.len();
        let count = if crowded { FEW.min(waiting) } else { waiting };
        let due: Vec<_> = self.order.drain(..count).collect();
        for id in &due {
            self.ids.remove(id);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::{FEW, Newcomers};
    use crate::domain::ids::InstanceId;
    use uuid::Uuid;

    #[test]
    fn a_few_of_a_crowd_and_all_of_the_rest_in_order() {
        let ids: Vec<_> = (0..10).map(|n| InstanceId(Uuid::from_u128(n))).collect();
        let mut newcomers = Newcomers::default();
        for id in ids.iter().chain(&ids) {
            newcomers.add(*id);
        }
        assert_eq!(newcomers.due(true), ids[..FEW]);
        assert!(!newcomers.has(ids[0]) && newcomers.has(ids[FEW]));
        assert_eq!(newcomers.due(true), ids[FEW..2 * FEW]);
        assert_eq!(newcomers.due(false), ids[2 * FEW..]);
        assert!(newcomers.is_empty() && newcomers.due(true).is_empty());
    }
}

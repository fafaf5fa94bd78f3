//! New instances that wait for their turn. While they come fast, or requests so fast that they share
//! commits, the cores belong to requests: what is accepted meanwhile is made bit by bit, and the rest
//! in quiet, no faster than cores can work, so that the next rush finds them free again. Nobody notices
//! a start that is so much later; everybody would an answer.

use crate::domain::ids::InstanceId;
use std::collections::{HashSet, VecDeque};
use std::time::{Duration, Instant};

/// Time between two turns.
pub const TURN: Duration = Duration::from_millis(1);
/// In every how many of them one begins for each core during a rush. A start costs a quarter of a
/// millisecond of a core, so that this takes a sixteenth of them.
const SELDOM: usize = 4;
/// How many begin in each turn in quiet, for each core.
const PER_CORE: usize = 4;
/// So many that came in so long are a rush.
const RUSH: (usize, Duration) = (8, Duration::from_millis(8));

/// Them, oldest first.
#[derive(Debug)]
pub struct Newcomers {
    order: VecDeque<InstanceId>,
    ids: HashSet<InstanceId>,
    cores: usize,
    turns: usize,
    /// When the latest came: as many as make a rush.
    came: VecDeque<Instant>,
}

impl Newcomers {
    /// None yet.
    pub fn new(cores: usize) -> Self {
        Self {
            order: VecDeque::new(),
            ids: HashSet::new(),
            cores,
            turns: 0,
            came: VecDeque::new(),
        }
    }

    /// One more. True if it need not wait; `crowded` is whether requests share commits.
    pub fn come(&mut self, id: InstanceId, crowded: bool, now: Instant) -> bool {
        if self.came.len() == RUSH.0 {
            self.came.pop_front();
        }
        self.came.push_back(now);
        let waits = crowded || self.is_rush(now);
        if waits && self.ids.insert(id) {
            self.order.push_back(id);
        }
        !waits
    }

    fn is_rush(&self, now: Instant) -> bool {
        let first = self.came.front().filter(|_| self.came.len() == RUSH.0);
        first.is_some_and(|first| now.duration_since(*first) < RUSH.1)
    }

    /// Whether this one waits.
    pub fn has(&self, id: InstanceId) -> bool {
        self.ids.contains(&id)
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Those whose turn it is.
    pub fn due(&mut self, crowded: bool, now: Instant) -> Vec<InstanceId> {
        self.turns += 1;
        let per_core = match crowded || self.is_rush(now) {
            true => usize::from(self.turns.is_multiple_of(SELDOM)),
            false => PER_CORE,
        };
        let count = per_core * self.cores;
        let due: Vec<_> = self.order.drain(..count.min(self.order.len())).collect();
        for id in &due {
            self.ids.remove(id);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::{Newcomers, PER_CORE, RUSH, SELDOM};
    use crate::domain::ids::InstanceId;
    use std::time::{Duration, Instant};
    use uuid::Uuid;

    fn some(count: usize) -> Vec<InstanceId> {
        (0..count)
            .map(|n| InstanceId(Uuid::from_u128(n as u128)))
            .collect()
    }

    /// As many turns as it takes until some begin during a rush.
    fn seldom(newcomers: &mut Newcomers, crowded: bool, now: Instant) -> Vec<InstanceId> {
        (0..SELDOM)
            .flat_map(|_| newcomers.due(crowded, now))
            .collect()
    }

    #[test]
    fn a_few_of_a_crowd_and_more_in_quiet_in_order() {
        let quiet = 4..4 + 2 * PER_CORE;
        let ids = some(quiet.end + 1);
        let mut newcomers = Newcomers::new(2);
        let now = Instant::now();
        for id in ids.iter().chain(&ids) {
            assert!(!newcomers.come(*id, true, now));
        }
        assert_eq!(seldom(&mut newcomers, true, now), ids[..2]);
        assert!(!newcomers.has(ids[1]) && newcomers.has(ids[2]));
        let later = now + RUSH.1;
        assert_eq!(seldom(&mut newcomers, true, later), ids[2..4]);
        assert_eq!(newcomers.due(false, later), ids[quiet.clone()]);
        assert_eq!(newcomers.due(false, later), ids[quiet.end..]);
        assert!(newcomers.is_empty() && newcomers.due(true, later).is_empty());
    }

    #[test]
    fn those_that_come_fast_wait_though_each_has_a_commit_of_its_own() {
        let ids = some(2 * RUSH.0);
        let begin = Instant::now();
        let apart = |n: usize, step: Duration| begin + step * u32::try_from(n).unwrap_or(0);
        let mut newcomers = Newcomers::new(2);
        let step = RUSH.1 / 16;
        let at_once = |n: &usize| newcomers.come(ids[*n], false, apart(*n, step));
        let begun: Vec<_> = (0..ids.len()).filter(at_once).collect();
        assert_eq!(begun, (0..RUSH.0 - 1).collect::<Vec<_>>());
        let last = apart(ids.len(), step);
        assert_eq!(seldom(&mut newcomers, false, last).len(), 2);
        assert!(newcomers.due(false, last + RUSH.1).len() > 2);
        let mut newcomers = Newcomers::new(2);
        let slowly = |n: usize| newcomers.come(ids[n], false, apart(n, RUSH.1 / 4));
        assert!((0..ids.len()).all(slowly) && newcomers.is_empty());
    }
}

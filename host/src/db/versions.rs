//! Tells a reader whether what it read once is still so, without reading it again.
//!
//! Every topic has a counter, shared with others by hash. A commit that changes rows of a topic makes
//! its counter odd before it begins and even, and another, after it has ended. What was read between
//! two looks at the same even number was read while nothing of the topic changed; and it holds for as
//! long as the number stays.

use crate::domain::ids::{InstanceId, NodeId, UserId};
use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters. More of them mean fewer topics that change for others' sake.
const COUNTERS: usize = 1 << 14;

/// What rows are about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Topic {
    /// One instance's row.
    Instance(InstanceId),
    /// The rows of all instances of an owner.
    Owner(UserId),
    /// The rows of all instances on a node.
    Node(NodeId),
}

/// The rows of a topic as they were at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version(u64);

/// The counters.
#[derive(Debug)]
pub(super) struct Versions {
    hash: RandomState,
    counters: Box<[AtomicU64]>,
}

impl Default for Versions {
    fn default() -> Self {
        Self {
            hash: RandomState::new(),
            counters: (0..COUNTERS).map(|_| AtomicU64::new(0)).collect(),
        }
    }
}

impl Versions {
    /// The present version; none while it may be changing.
    pub fn of(&self, topic: &Topic) -> Option<Version> {
        let counter = self.counters.get(self.place(topic))?;
        let count = counter.load(Ordering::SeqCst);
        count.is_multiple_of(2).then_some(Version(count))
    }

    /// Where the counter of a topic is.
    pub fn place(&self, topic: &Topic) -> usize {
        // The remainder is below the number of counters, so it fits.
        usize::try_from(self.hash.hash_one(topic) % COUNTERS as u64).unwrap_or(0)
    }

    /// Topics with these counters change until the result is dropped. For one writer at a time.
    pub fn changing(&self, places: BTreeSet<usize>) -> Changing<'_> {
        let changing = Changing {
            versions: self,
            places,
        };
        changing.step();
        changing
    }
}

/// A change under way.
pub(super) struct Changing<'a> {
    versions: &'a Versions,
    places: BTreeSet<usize>,
}

impl Changing<'_> {
    fn step(&self) {
        for place in &self.places {
            if let Some(counter) = self.versions.counters.get(*place) {
                counter.fetch_add(1, Ordering::SeqCst);
            }
        }
    }
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        self.step();
    }
}

#[cfg(test)]
mod tests {
    use super::{Topic, Versions};
    use crate::domain::ids::UserId;

    #[test]
    fn a_version_ends_with_a_change_and_there_is_none_meanwhile() {
        let versions = Versions::default();
        let one = Topic::Owner(UserId(1));
        let mut others = (2..).map(|n| Topic::Owner(UserId(n)));
        let apart = |other: &Topic| versions.place(other) != versions.place(&one);
        let other = others.find(apart).unwrap();
        let before = (versions.of(&one), versions.of(&other));
        let changing = versions.changing([versions.place(&one)].into());
        assert_eq!((versions.of(&one), versions.of(&other)), (None, before.1));
        drop(changing);
        assert!(versions.of(&one).is_some() && versions.of(&one) != before.0);
        assert_eq!(versions.of(&other), before.1);
    }
}

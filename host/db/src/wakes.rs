//! Notifications about commits, by owner. They carry no rows: the database has them.

use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tokio::sync::watch;
use wharf_domain::ids::UserId;

/// The topic of the audit log.
pub(super) const AUDIT: &str = "audit";

/// The number of commits with a change, by topic, since the first receiver of an owner. A topic is a list of
/// an owner that changes without an event, as tables declare it.
pub type TopicCounts = BTreeMap<&'static str, u64>;

/// The owners that a commit concerns.
#[derive(Debug, Default)]
pub struct Woken {
    /// The owners with new events.
    pub(super) events: BTreeSet<UserId>,
    /// The changed topics of each owner.
    pub(super) topics: BTreeSet<(UserId, &'static str)>,
}

/// The receivers of notifications, by owner.
#[derive(Debug, Default)]
pub struct Wakes {
    owners: Mutex<HashMap<UserId, OwnerTopics>>,
}

#[derive(Debug, Default)]
struct OwnerTopics {
    events: watch::Sender<()>,
    topics: watch::Sender<TopicCounts>,
}

impl OwnerTopics {
    fn is_watched(&self) -> bool {
        self.events.receiver_count() + self.topics.receiver_count() > 0
    }
}

impl Wakes {
    /// Changes after each commit with an event of this owner.
    pub fn of(&self, owner: UserId) -> watch::Receiver<()> {
        let mut owners = self.owners.lock();
        owners.retain(|_, of| of.is_watched());
        owners.entry(owner).or_default().events.subscribe()
    }

    /// Changes after each commit with a change of a topic of this owner.
    pub fn topics_of(&self, owner: UserId) -> watch::Receiver<TopicCounts> {
        let mut owners = self.owners.lock();
        owners.retain(|_, of| of.is_watched());
        owners.entry(owner).or_default().topics.subscribe()
    }

    /// Notifies the receivers of the owners that a commit concerns.
    pub fn wake(&self, woken: &Woken) {
        if woken.events.is_empty() && woken.topics.is_empty() {
            return;
        }
        let owners = self.owners.lock();
        for owner in &woken.events {
            if let Some(of) = owners.get(owner) {
                of.events.send_replace(());
            }
        }
        for (owner, topic) in &woken.topics {
            if let Some(of) = owners.get(owner) {
                let count = |counts: &mut TopicCounts| *counts.entry(topic).or_default() += 1;
                of.topics.send_modify(count);
            }
        }
    }
}

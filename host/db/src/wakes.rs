//! Notifications about commits, by owner. They carry no rows: the database has them.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use wharf_domain::ids::UserId;

/// A list of an owner that changes without an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Topic {
    /// The audit log.
    Audit,
    /// The SSH host keys of an instance.
    HostKeys,
    /// The API keys, apart from their last uses.
    Keys,
    /// The saved SSH public keys.
    SshKeys,
    /// The webhooks and their deliveries.
    Webhooks,
}

impl Topic {
    /// All topics, each at the index of its count.
    pub const ALL: [Self; 5] = [
        Self::Audit,
        Self::HostKeys,
        Self::Keys,
        Self::SshKeys,
        Self::Webhooks,
    ];
}

/// The number of commits with a change, by topic, since the first receiver of an owner.
pub type TopicCounts = [u64; Topic::ALL.len()];

/// The owners that a commit concerns.
#[derive(Debug, Default)]
pub struct Woken {
    /// The owners with new events.
    pub(super) events: BTreeSet<UserId>,
    /// The changed topics of each owner.
    pub(super) topics: BTreeSet<(UserId, Topic)>,
}

/// The receivers of notifications, by owner.
#[derive(Debug, Default)]
pub struct Wakes {
    owners: Mutex<HashMap<UserId, Owner>>,
}

#[derive(Debug, Default)]
struct Owner {
    events: watch::Sender<()>,
    topics: watch::Sender<TopicCounts>,
}

impl Owner {
    fn is_watched(&self) -> bool {
        self.events.receiver_count() + self.topics.receiver_count() > 0
    }
}

impl Wakes {
    /// Changes after each commit with an event of this owner.
    pub fn of(&self, owner: UserId) -> watch::Receiver<()> {
        let mut owners = self.owners();
        owners.retain(|_, of| of.is_watched());
        owners.entry(owner).or_default().events.subscribe()
    }

    /// Changes after each commit with a change of a topic of this owner.
    pub fn topics_of(&self, owner: UserId) -> watch::Receiver<TopicCounts> {
        let mut owners = self.owners();
        owners.retain(|_, of| of.is_watched());
        owners.entry(owner).or_default().topics.subscribe()
    }

    /// Notifies the receivers of the owners that a commit concerns.
    pub fn wake(&self, woken: &Woken) {
        if woken.events.is_empty() && woken.topics.is_empty() {
            return;
        }
        let owners = self.owners();
        for owner in &woken.events {
            if let Some(of) = owners.get(owner) {
                of.events.send_replace(());
            }
        }
        for (owner, topic) in &woken.topics {
            if let Some(of) = owners.get(owner) {
                of.topics.send_modify(|counts| {
                    let all = Topic::ALL.iter().zip(counts);
                    all.filter(|(other, _)| *other == topic)
                        .for_each(|(_, count)| *count += 1);
                });
            }
        }
    }

    fn owners(&self) -> MutexGuard<'_, HashMap<UserId, Owner>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

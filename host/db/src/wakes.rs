//! Notifications about new events. They carry no events: the rows have them.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};
use tokio::sync::watch;
use wharf_domain::ids::UserId;

/// The receivers of notifications, by owner.
#[derive(Debug, Default)]
pub struct Wakes {
    owners: Mutex<HashMap<UserId, watch::Sender<()>>>,
}

impl Wakes {
    /// Changes after each commit with an event of this owner.
    pub fn of(&self, owner: UserId) -> watch::Receiver<()> {
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        owners.retain(|_, sender| sender.receiver_count() > 0);
        owners.entry(owner).or_default().subscribe()
    }

    /// A commit has new events of these owners.
    pub fn wake(&self, changed: &BTreeSet<UserId>) {
        if changed.is_empty() {
            return;
        }
        let owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        for owner in changed {
            if let Some(sender) = owners.get(owner) {
                sender.send_replace(());
            }
        }
    }
}

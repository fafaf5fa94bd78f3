//! The users that are disabled, and notice of credentials that are not valid any more.

use super::App;
use super::account::state::DISABLED;
use super::caller::{Caller, Credential};
use arc_swap::ArcSwap;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use wharf_db::{Db, Rows as _};
use wharf_domain::error::Error;
use wharf_domain::ids::UserId;

/// The interval at which a long request looks for the expiry of its credential.
const LOOK_EVERY: Duration = Duration::from_secs(15);

/// Shared by the API keys and the sessions.
#[derive(Clone)]
pub struct Access(Arc<Shared>);

struct Shared {
    disabled: ArcSwap<HashSet<UserId>>,
    ended: watch::Sender<()>,
}

impl Access {
    pub(super) fn load(db: &Db) -> Result<Self, Error> {
        let disabled = db.read(|rows| {
            let users = rows.all(&DISABLED)?;
            users.map(|row| row.map(|(user, ..)| user)).collect()
        })?;
        Ok(Self(Arc::new(Shared {
            disabled: ArcSwap::from_pointee(disabled),
            ended: watch::Sender::new(()),
        })))
    }

    pub(super) fn is_disabled(&self, user: UserId) -> bool {
        self.0.disabled.load().contains(&user)
    }

    pub(super) fn set_disabled(&self, user: UserId, disabled: bool) {
        self.0.disabled.rcu(|users| {
            let mut changed = HashSet::clone(users);
            if disabled {
                changed.insert(user)
            } else {
                changed.remove(&user)
            };
            changed
        });
        self.notify();
    }

    /// Wakes the requests that must end if their credential is not valid any more.
    pub(super) fn notify(&self) {
        self.0.ended.send_replace(());
    }
}

/// The reason for which a key or a session is not valid any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Invalid {
    /// The user is disabled.
    Disabled,
    Expired,
    /// It was revoked, or ended by its user.
    Ended,
}

impl App {
    /// Returns the reason for which the key or the session of a caller is not valid any more.
    pub fn why_invalid(&self, caller: &Caller) -> Invalid {
        let is_known = match caller.credential {
            Credential::Key => self.keys.is_known(&caller.key_id),
            Credential::Session => self.accounts.is_known(&caller.key_id),
        };
        if self.keys.access().is_disabled(caller.user) {
            Invalid::Disabled
        } else if is_known {
            Invalid::Expired
        } else {
            Invalid::Ended
        }
    }

    /// Returns whether the key or the session of a caller is still valid.
    pub fn is_valid(&self, caller: &Caller) -> bool {
        self.holds(caller.credential, &caller.key_id)
    }

    /// Returns whether the key or the session with this id is still valid.
    pub(super) fn holds(&self, credential: Credential, id: &str) -> bool {
        match credential {
            Credential::Key => self.keys.is_valid(id),
            Credential::Session => self.accounts.is_valid(id, &self.config().session),
        }
    }

    /// Changes when a credential ends, and when a user is disabled or enabled.
    pub fn access_changed(&self) -> watch::Receiver<()> {
        self.keys.access().0.ended.subscribe()
    }

    /// Completes when the key or the session of a caller is not valid any more. Streams end with it.
    pub async fn access_ended(&self, caller: &Caller) {
        let mut changes = self.access_changed();
        while self.is_valid(caller) {
            // The sender outlives `self`. A credential that expires gives no notice.
            drop(tokio::time::timeout(LOOK_EVERY, changes.changed()).await);
        }
    }
}

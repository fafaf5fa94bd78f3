//! The users that are disabled, and notice of credentials that are not valid any more.

use super::Accounts;
use super::disabled::DISABLED;
use arc_swap::ArcSwap;
use std::collections::HashSet;
use tokio::sync::watch;
use wharf_db::{Db, Rows as _};
use wharf_domain::audit::Actor;
use wharf_domain::error::Error;
use wharf_domain::ids::UserId;
use wharf_ground::caller::{Caller, Credential};

/// The part of authentication that keys and sessions share.
pub(super) struct Access {
    disabled: ArcSwap<HashSet<UserId>>,
    ended: watch::Sender<()>,
}

impl Access {
    pub(super) fn load(db: &Db) -> Result<Self, Error> {
        let disabled = db.read(|rows| {
            let users = rows.all(&DISABLED)?;
            users.map(|row| row.map(|(user, ..)| user)).collect()
        })?;
        Ok(Self {
            disabled: ArcSwap::from_pointee(disabled),
            ended: watch::Sender::new(()),
        })
    }

    pub(super) fn is_disabled(&self, user: UserId) -> bool {
        self.disabled.load().contains(&user)
    }

    pub(super) fn set_disabled(&self, user: UserId, disabled: bool) {
        self.disabled.rcu(|users| {
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
        self.ended.send_replace(());
    }
}

/// The reason for which a key or a session is not valid any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InvalidCredential {
    /// The user is disabled.
    Disabled,
    Expired,
    /// It was revoked, or ended by its user.
    Ended,
}

impl Accounts {
    /// Returns the reason for which the key or the session of a caller is not valid any more.
    pub fn why_invalid(&self, caller: &Caller) -> InvalidCredential {
        let is_known = match caller.credential {
            Credential::Key => self.keys.is_known(&caller.key_id),
            Credential::Session => self.is_known_session(&caller.key_id),
        };
        if self.is_disabled(caller.user) {
            InvalidCredential::Disabled
        } else if is_known {
            InvalidCredential::Expired
        } else {
            InvalidCredential::Ended
        }
    }

    pub fn is_disabled(&self, user: UserId) -> bool {
        self.keys.access.is_disabled(user)
    }

    /// Returns whether the key or the session of an actor is still valid.
    pub fn is_valid(&self, actor: &Actor) -> bool {
        match actor {
            Actor::Key(id) => self.keys.is_valid(id),
            Actor::Session(id) => self.is_valid_session(id),
            Actor::Operator => false,
        }
    }

    /// Changes when a credential ends, and when a user is disabled or enabled.
    pub fn access_changed(&self) -> watch::Receiver<()> {
        self.keys.access.ended.subscribe()
    }
}

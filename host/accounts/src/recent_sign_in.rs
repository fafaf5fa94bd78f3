//! One rule for everything that gives lasting access to an account: a session needs a recent sign-in for
//! it. A session that was left open or taken must not outlive itself.

use super::Accounts;
use super::session::SESSIONS;
use super::session::parse_id;
use crate::key::{ApiKey, KeyRequest};
use crate::key_rows::KEYS;
use std::sync::Arc;
use wharf_db::{Rows as _, View};
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::scope::Scopes;
use wharf_domain::time::Timestamp;
use wharf_ground::caller::{Caller, Credential};

/// The time in milliseconds after a sign-in in which lasting access is given: 15 minutes.
const RECENT_MS: i64 = 15 * 60_000;

/// The time in milliseconds after which a session's key expires if its user has not chosen: 90 days.
const KEY_MS: i64 = 90 * 24 * 3_600_000;

/// The most times that keys are looked for and revoked. Keys that were valid until then may have made
/// others meanwhile.
const ROUNDS: usize = 8;

/// The chosen expiry of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    /// The user has not chosen.
    Default,
    Never,
    At(Timestamp),
}

impl Accounts {
    /// Refuses a session whose sign-in is not recent. A key passes, as what it gives never outlives it.
    pub fn require_recent(&self, caller: &Caller) -> Result<(), Error> {
        match caller.credential {
            Credential::Session => self.require_recent_sign_in(caller),
            Credential::Key => Ok(()),
        }
    }

    /// Refuses a caller whose sign-in is not recent.
    pub(super) fn require_recent_sign_in(&self, caller: &Caller) -> Result<(), Error> {
        let began = self.begin_of(caller);
        // The system's clock may have been set back since.
        let is_recent = |began: Timestamp| (self.clock.system().0 - began.0).abs() < RECENT_MS;
        let recent = began.is_some_and(is_recent);
        recent.then_some(()).ok_or(Error::StaleSignIn)
    }

    /// Makes a key of the caller.
    pub async fn make_key(
        &self,
        caller: &Caller,
        name: String,
        scopes: Option<Scopes>,
        expiry: Expiry,
    ) -> Result<(ApiKey, KeyRequest), Error> {
        self.require_recent(caller)?;
        let expires_at = match expiry {
            Expiry::At(at) => Some(at),
            Expiry::Never if caller.expires_at.is_some() => {
                let message = "must not be after that of this key, which expires";
                return Err(FieldErrors::one("expires_at", message).into());
            }
            Expiry::Default if caller.credential == Credential::Session => {
                Some(Timestamp(self.clock.system().0.saturating_add(KEY_MS)))
            }
            Expiry::Never | Expiry::Default => None,
        };
        self.keys.derive(caller, name, scopes, expires_at).await
    }

    /// Ends all sessions of a caller, and revokes the keys that were made since a time. The sessions end
    /// after the keys, so that the request can be repeated if a revocation fails.
    ///
    /// The work goes on if the caller goes away.
    pub async fn sign_out_everywhere(
        self: &Arc<Self>,
        caller: &Caller,
        keys_since: Option<Timestamp>,
    ) -> Result<(), Error> {
        let (accounts, caller) = (Arc::clone(self), caller.clone());
        let task = tokio::spawn(async move {
            accounts.revoke_since(&caller, keys_since).await?;
            accounts.end_sessions(&caller, None).await?;
            // Sessions may have made keys until their end.
            accounts.revoke_since(&caller, keys_since).await
        });
        let aborted = |error| Error::caused("the sign-out was aborted", error);
        task.await.map_err(aborted)?
    }

    async fn revoke_since(
        &self,
        caller: &Caller,
        keys_since: Option<Timestamp>,
    ) -> Result<(), Error> {
        let Some(since) = keys_since else {
            return Ok(());
        };
        for _ in 0..ROUNDS {
            let keys = self.keys.list(Some(caller.user))?.into_iter();
            let mut made = keys.filter(|key| key.created_at >= since).peekable();
            if made.peek().is_none() {
                break;
            }
            for key in made {
                let (user, origin) = (Some(caller.user), caller.origin());
                match self.keys.revoke(&key.id, user, &origin).await {
                    // It was revoked meanwhile.
                    Err(Error::KeyNotFound) => {}
                    other => other?,
                }
            }
        }
        Ok(())
    }
}

/// Refuses a caller whose key or session has ended since the request began. The body of a request may
/// arrive long after its head.
pub fn require_access(view: &View<'_>, caller: &Caller) -> Result<(), Error> {
    match caller.credential {
        Credential::Key => {
            let key = view.rows.get(&KEYS, &*caller.key_id)?;
            let is_valid = key.is_some_and(|key| key.revoked_at.is_none());
            is_valid.then_some(()).ok_or(Error::KeyNotFound)
        }
        Credential::Session => {
            let own = parse_id(&caller.key_id).ok_or(Error::StaleSignIn)?;
            let session = view.rows.get(&SESSIONS, (caller.user, own))?;
            session.map(drop).ok_or(Error::StaleSignIn)
        }
    }
}

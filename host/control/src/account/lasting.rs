//! One rule for everything that gives lasting access to an account: a session needs a recent sign-in for
//! it. A session that was left open or taken must not outlive itself.

use crate::App;
use crate::caller::{Caller, Credential};
use crate::key::{ApiKey, NewKey};
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::scope::Scopes;
use wharf_domain::time::Timestamp;

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

impl App {
    /// Refuses a session whose sign-in is not recent. A key passes, as what it gives never outlives it.
    pub(crate) fn require_recent(&self, caller: &Caller) -> Result<(), Error> {
        match caller.credential {
            Credential::Session => self.accounts.require_recent(caller),
            Credential::Key => Ok(()),
        }
    }

    /// Makes a key of the caller.
    pub async fn make_key(
        &self,
        caller: &Caller,
        name: String,
        scopes: Option<Scopes>,
        expiry: Expiry,
    ) -> Result<(ApiKey, NewKey), Error> {
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

    /// Ends all sessions of a caller, and revokes the keys that were made since a time.
    pub async fn sign_out_everywhere(
        &self,
        caller: &Caller,
        keys_since: Option<Timestamp>,
    ) -> Result<(), Error> {
        self.accounts.end_sessions(caller, None).await?;
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

/// Whether a sign-in at a time is recent.
pub(super) fn is_recent(began: Timestamp, now: Timestamp) -> bool {
    now.0 - began.0 < RECENT_MS
}

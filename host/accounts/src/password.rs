//! Sign-in by password, and its change.

use super::hashing::PasswordRow;
use super::session::{end_others, parse_id};
use super::{Accounts, AnonymousSender};
use crate::session::NewSession;
use wharf_db::{Changes, Rows as _, Table, tables};
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::ids::UserId;
use wharf_domain::secret::SecretText;
use wharf_ground::audit;
use wharf_ground::caller::Caller;
use wharf_ground::users::{USERS, user_of_email};

/// The shortest password in characters.
const MIN_CHARS: usize = 12;
/// The longest password in bytes.
const MAX_BYTES: usize = 256;

tables! {
    /// The password of a user.
    pub const PASSWORDS: Table<UserId, (), PasswordRow> =
        Table::bounded(b'U', 1, "One row of a user", "Until it is replaced").of(&USERS);
}

/// Checks a new password.
pub(super) fn check(field: &str, password: &SecretText) -> Result<(), FieldErrors> {
    let text = password.expose();
    if text.chars().count() < MIN_CHARS {
        let message = format!("must have at least {MIN_CHARS} characters");
        return Err(FieldErrors::one(field, message));
    }
    if text.len() > MAX_BYTES {
        let message = format!("must have at most {MAX_BYTES} bytes");
        return Err(FieldErrors::one(field, message));
    }
    Ok(())
}

impl Accounts {
    /// Signs a user in. An unknown address, a wrong password and a disabled user take equal work.
    pub async fn sign_in(
        &self,
        visitor: &AnonymousSender,
        email: &str,
        password: SecretText,
    ) -> Result<NewSession, Error> {
        let (user, row) = self.db.read(|rows| {
            let user = user_of_email(rows, email)?;
            let row = user.map(|user| rows.get(&PASSWORDS, user)).transpose()?;
            Ok((user, row.flatten()))
        })?;
        let too_long = password.expose().len() > MAX_BYTES;
        let password = if too_long {
            SecretText::new("")
        } else {
            password
        };
        let right = self.hashing.verify(password, row.clone()).await?;
        let refused = |user: Option<u64>| {
            tracing::info!(user, peer = ?visitor.peer, "a sign-in was refused");
            Error::SignInRefused
        };
        let Some(user) = user.filter(|_| right) else {
            return Err(refused(user.map(|user| user.0)));
        };
        // The password may have been changed meanwhile.
        let session = self.begin_session(visitor, user, "password", move |view, _| {
            if view.rows.get(&PASSWORDS, user)? == row {
                Ok(Changes::none())
            } else {
                Err(Error::SignInRefused)
            }
        });
        let session = session.await;
        session.map_err(|error| match error {
            Error::SignInRefused => refused(Some(user.0)),
            other => other,
        })
    }

    /// Returns whether the caller has a password.
    pub fn has_password(&self, caller: &Caller) -> Result<bool, Error> {
        let row = self.db.read(|rows| rows.get(&PASSWORDS, caller.user))?;
        Ok(row.is_some())
    }

    /// Changes the password of a caller, and ends the other sessions. `current` is needed if there is
    /// a password, and a recent sign-in if there is none.
    pub async fn change_password(
        &self,
        caller: &Caller,
        current: Option<SecretText>,
        new: SecretText,
    ) -> Result<(), Error> {
        check("new", &new)?;
        let (user, origin) = (caller.user, caller.origin());
        let before = self.db.read(|rows| rows.get(&PASSWORDS, user))?;
        if before.is_none() {
            self.require_recent_sign_in(caller)?;
        } else {
            let Some(current) = current.filter(|text| text.expose().len() <= MAX_BYTES) else {
                return Err(FieldErrors::one("current", WRONG).into());
            };
            if !self.hashing.verify(current, before.clone()).await? {
                return Err(FieldErrors::one("current", WRONG).into());
            }
        }
        let row = self.hashing.hash(new).await?;
        let kept = parse_id(&caller.key_id);
        self.forget(user, |id| Some(id) != kept);
        let written = self.db.write(move |view| {
            if view.rows.get(&PASSWORDS, user)? != before {
                return Err(FieldErrors::one("current", WRONG).into());
            }
            let audited = audit::record(
                view,
                &origin,
                "user.password",
                Some(user),
                "password",
                "changed",
            );
            let changes = end_others(view, user, kept)?.put(&PASSWORDS, user, row.clone());
            Ok(((), changes.with(audited)))
        });
        let written = written.await;
        self.refresh(user)?;
        written
    }
}

const WRONG: &str = "is not your present password";

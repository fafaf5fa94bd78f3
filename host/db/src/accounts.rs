//! The rows by which users sign in: sessions, invitations, passwords, and disabled users.

use super::read::Read;
use super::rows::{InviteRow, PasswordRow, SessionId, SessionRow};
use super::table::{Draft, Rows};
use super::tables as t;
use wharf_domain::error::Error;
use wharf_domain::ids::UserId;
use wharf_domain::time::Timestamp;

/// One change of these rows.
#[derive(Debug)]
pub enum AccountChange {
    /// A new session.
    PutSession(UserId, SessionId, SessionRow),
    /// Writes the last use of a session, if the session exists.
    PutSessionUse(UserId, SessionId, Timestamp),
    /// Ends a session.
    DropSession(UserId, SessionId),
    /// Writes the invitation of a user over an earlier one.
    PutInvite(UserId, InviteRow),
    /// Removes the invitation of a user.
    DropInvite(UserId),
    /// Writes the password of a user over an earlier one.
    PutPassword(UserId, PasswordRow),
    /// Removes the password of a user.
    DropPassword(UserId),
    /// Disables a user.
    Disable(UserId, Timestamp),
    /// Enables a user.
    Enable(UserId),
}

impl Draft<'_> {
    pub(super) fn apply_account(&mut self, change: AccountChange) -> Result<(), Error> {
        match change {
            AccountChange::PutSession(user, id, row) => {
                self.put(&t::SESSIONS, &user, id, &row)?;
            }
            AccountChange::PutSessionUse(user, id, at) => {
                if self.get(&t::SESSIONS, &user, id)?.is_some() {
                    self.put(&t::SESSION_USES, &user, id, &at)?;
                }
            }
            AccountChange::DropSession(user, id) => {
                self.remove(&t::SESSIONS, &user, id)?;
                self.remove(&t::SESSION_USES, &user, id)?;
            }
            AccountChange::PutInvite(user, row) => {
                self.put(&t::INVITES, &user, (), &row)?;
            }
            AccountChange::DropInvite(user) => {
                self.remove(&t::INVITES, &user, ())?;
            }
            AccountChange::PutPassword(user, row) => {
                self.put(&t::PASSWORDS, &user, (), &row)?;
            }
            AccountChange::DropPassword(user) => {
                self.remove(&t::PASSWORDS, &user, ())?;
            }
            AccountChange::Disable(user, at) => {
                self.put(&t::DISABLED, &user, (), &at)?;
            }
            AccountChange::Enable(user) => {
                self.remove(&t::DISABLED, &user, ())?;
            }
        }
        Ok(())
    }
}

/// Questions to these rows.
#[expect(
    clippy::missing_errors_doc,
    reason = "all fail only if the file is broken"
)]
pub trait ReadAccounts: Rows {
    /// All sessions, expired ones included.
    fn all_sessions(&self) -> Result<Vec<(UserId, SessionId, SessionRow)>, Error> {
        self.all(&t::SESSIONS)?.collect()
    }

    /// The sessions of a user, expired ones included.
    fn sessions_of(&self, user: UserId) -> Result<Vec<(SessionId, SessionRow)>, Error> {
        self.under(&t::SESSIONS, &user)?.collect()
    }

    /// The last use of a session.
    fn session_use(&self, user: UserId, id: SessionId) -> Result<Option<Timestamp>, Error> {
        self.get(&t::SESSION_USES, &user, id)
    }

    /// The invitation of a user, even if it has expired.
    fn invite(&self, user: UserId) -> Result<Option<InviteRow>, Error> {
        self.get(&t::INVITES, &user, ())
    }

    /// The password of a user.
    fn password(&self, user: UserId) -> Result<Option<PasswordRow>, Error> {
        self.get(&t::PASSWORDS, &user, ())
    }

    /// Whether a user is disabled.
    fn is_disabled(&self, user: UserId) -> Result<bool, Error> {
        Ok(self.get(&t::DISABLED, &user, ())?.is_some())
    }

    /// The users that are disabled.
    fn disabled_users(&self) -> Result<Vec<UserId>, Error> {
        self.all(&t::DISABLED)?
            .map(|row| row.map(|(user, (), _)| user))
            .collect()
    }
}

impl<T: Rows> ReadAccounts for T {}

/// The rows that are of no user, or of no session.
pub(super) fn check(rows: &impl Read) -> Result<Vec<String>, Error> {
    let mut wrong = Vec::new();
    let mut owned = Vec::new();
    for row in rows.all(&t::SESSIONS)? {
        owned.push(("a session", row?.0));
    }
    for row in rows.all(&t::SESSION_USES)? {
        let (user, id, _) = row?;
        if rows.get(&t::SESSIONS, &user, id)?.is_none() {
            wrong.push(format!("a last use of user {} without a session", user.0));
        }
    }
    for row in rows.all(&t::INVITES)? {
        owned.push(("an invitation", row?.0));
    }
    for row in rows.all(&t::PASSWORDS)? {
        owned.push(("a password", row?.0));
    }
    for row in rows.all(&t::SSH_KEYS)? {
        owned.push(("an SSH key", row?.0));
    }
    for user in rows.disabled_users()? {
        owned.push(("a disabled account", user));
    }
    for (thing, user) in owned {
        if rows.email_of(user)?.is_none() {
            wrong.push(format!("{thing} of user {}, which does not exist", user.0));
        }
    }
    Ok(wrong)
}

//! The ways to sign in without a password: passkeys, and identities at providers of OpenID Connect.

use super::read::Read;
use super::rows::{IdentityDigest, IdentityRow, PasskeyDigest, PasskeyRow};
use super::table::{Draft, Rows};
use super::tables as t;
use wharf_domain::error::Error;
use wharf_domain::ids::UserId;

/// One change of these rows.
#[derive(Debug)]
pub enum WayChange {
    /// Writes a passkey over its earlier state.
    PutPasskey(UserId, PasskeyDigest, PasskeyRow),
    /// Removes a passkey.
    DropPasskey(UserId, PasskeyDigest),
    /// Links an identity to a user.
    PutIdentity(UserId, IdentityDigest, IdentityRow),
    /// Removes the link of an identity.
    DropIdentity(UserId, IdentityDigest),
}

impl Draft<'_> {
    pub(super) fn apply_way(&mut self, change: WayChange) -> Result<(), Error> {
        match change {
            WayChange::PutPasskey(user, digest, row) => {
                self.put(&t::PASSKEYS, &user, digest, &row)?;
                self.put(&t::PASSKEY_USERS, &(), digest, &user)?;
            }
            WayChange::DropPasskey(user, digest) => {
                self.remove(&t::PASSKEYS, &user, digest)?;
                self.remove(&t::PASSKEY_USERS, &(), digest)?;
            }
            WayChange::PutIdentity(user, digest, row) => {
                self.put(&t::IDENTITIES, &user, digest, &row)?;
                self.put(&t::IDENTITY_USERS, &(), digest, &user)?;
            }
            WayChange::DropIdentity(user, digest) => {
                self.remove(&t::IDENTITIES, &user, digest)?;
                self.remove(&t::IDENTITY_USERS, &(), digest)?;
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
pub trait ReadWays: Rows {
    /// The passkeys of a user.
    fn passkeys(&self, user: UserId) -> Result<Vec<(PasskeyDigest, PasskeyRow)>, Error> {
        self.under(&t::PASSKEYS, &user)?.collect()
    }

    /// A passkey of a user.
    fn passkey(&self, user: UserId, digest: PasskeyDigest) -> Result<Option<PasskeyRow>, Error> {
        self.get(&t::PASSKEYS, &user, digest)
    }

    /// The user of a passkey.
    fn user_of_passkey(&self, digest: PasskeyDigest) -> Result<Option<UserId>, Error> {
        self.get(&t::PASSKEY_USERS, &(), digest)
    }

    /// The identities of a user.
    fn identities(&self, user: UserId) -> Result<Vec<(IdentityDigest, IdentityRow)>, Error> {
        self.under(&t::IDENTITIES, &user)?.collect()
    }

    /// The user of an identity.
    fn user_of_identity(&self, digest: IdentityDigest) -> Result<Option<UserId>, Error> {
        self.get(&t::IDENTITY_USERS, &(), digest)
    }
}

impl<T: Rows> ReadWays for T {}

/// The rows of no user, and those that an index lacks or has too many.
pub(super) fn check(rows: &impl Read) -> Result<Vec<String>, Error> {
    let mut wrong = Vec::new();
    let mut owned = Vec::new();
    for row in rows.all(&t::PASSKEYS)? {
        let (user, digest, _) = row?;
        owned.push(("a passkey", user, rows.user_of_passkey(digest)?));
    }
    for row in rows.all(&t::IDENTITIES)? {
        let (user, digest, _) = row?;
        owned.push(("an identity", user, rows.user_of_identity(digest)?));
    }
    for (thing, user, indexed) in owned {
        if rows.email_of(user)?.is_none() {
            wrong.push(format!("{thing} of user {}, which does not exist", user.0));
        }
        if indexed != Some(user) {
            wrong.push(format!("{thing} of user {} without its index", user.0));
        }
    }
    for row in rows.all(&t::PASSKEY_USERS)? {
        let ((), digest, user) = row?;
        if rows.passkey(user, digest)?.is_none() {
            wrong.push(format!("the index of a passkey that user {} lacks", user.0));
        }
    }
    for row in rows.all(&t::IDENTITY_USERS)? {
        let ((), digest, user) = row?;
        if rows.get(&t::IDENTITIES, &user, digest)?.is_none() {
            wrong.push(format!(
                "the index of an identity that user {} lacks",
                user.0
            ));
        }
    }
    Ok(wrong)
}

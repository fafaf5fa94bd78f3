//! The passkeys of a user who is signed in: they are listed, named and removed.

use super::{PASSKEYS, PasskeyDigest, PasskeyRow, RelyingParty, passkeys};
use crate::Accounts;
use crate::session::id_name;
use crate::sign_in_methods::is_last;
use wharf_db::{Changes, View};
use wharf_domain::error::Error;
use wharf_domain::time::Timestamp;
use wharf_ground::audit;
use wharf_ground::caller::Caller;

/// A passkey as its owner sees it.
#[derive(Debug, Clone)]
pub struct Passkey {
    pub id: String,
    pub name: String,
    pub created_at: Timestamp,
    pub last_used_at: Option<Timestamp>,
    /// Whether browsers offer it at the present address of the console.
    pub usable: bool,
}

impl Passkey {
    pub(super) fn new((digest, row): (PasskeyDigest, PasskeyRow), host: &str) -> Self {
        Self {
            id: Self::id_of(digest),
            usable: row.host == host,
            name: row.name,
            created_at: row.created_at,
            last_used_at: row.last_used_at,
        }
    }

    /// The public id.
    pub(super) fn id_of(digest: PasskeyDigest) -> String {
        id_name(first(digest))
    }
}

/// The part of a digest that a public id has.
pub(in super::super) fn first(digest: [u8; 32]) -> [u8; 8] {
    let mut id = [0; 8];
    id.iter_mut()
        .zip(digest)
        .for_each(|(byte, from)| *byte = from);
    id
}

impl Accounts {
    /// Returns the passkeys of the caller, oldest first.
    pub fn passkeys(&self, caller: &Caller) -> Result<Vec<Passkey>, Error> {
        let console = RelyingParty::of(&self.config.get().base_url());
        let host = console.as_ref().map(RelyingParty::host);
        let host = host.unwrap_or_default();
        let mut passkeys = self.db.read(|rows| passkeys(rows, caller.user))?;
        passkeys.sort_by_key(|(digest, row)| (row.created_at, *digest));
        let passkeys = passkeys.into_iter();
        Ok(passkeys.map(|row| Passkey::new(row, host)).collect())
    }

    /// Gives a passkey of the caller another name.
    pub async fn rename_passkey(
        &self,
        caller: &Caller,
        id: &str,
        name: String,
    ) -> Result<(), Error> {
        let (caller, id) = (caller.clone(), id.to_owned());
        let renamed = self.db.write(move |view| {
            let (digest, row) = found(view, &caller, &id)?;
            let user = caller.user;
            let row = PasskeyRow {
                name: name.clone(),
                ..row
            };
            let origin = caller.origin();
            let audited =
                audit::record(view, &origin, "passkey.rename", Some(user), &id, "renamed");
            let changes = Changes::none().put(&PASSKEYS, (user, digest), row);
            Ok(((), changes.with(audited)))
        });
        renamed.await
    }

    /// Removes a passkey of the caller, unless it is the last way to sign in.
    pub async fn remove_passkey(&self, caller: &Caller, id: &str) -> Result<(), Error> {
        self.require_recent_sign_in(caller)?;
        let (caller, id, config) = (caller.clone(), id.to_owned(), self.config.get());
        let removed = self.db.write_essential(move |view| {
            let (digest, _) = found(view, &caller, &id)?;
            let user = caller.user;
            if is_last(view.rows, user, digest, &config)? {
                return Err(Error::NotApplicable(
                    "this passkey is the last way to sign in to the account; add another passkey or \
                     set a password first",
                ));
            }
            let origin = caller.origin();
            let audited =
                audit::record(view, &origin, "passkey.remove", Some(user), &id, "removed");
            let changes = Changes::none().remove(&PASSKEYS, (user, digest));
            Ok(((), changes.with(audited)))
        });
        removed.await
    }
}

fn found(view: &View<'_>, caller: &Caller, id: &str) -> Result<(PasskeyDigest, PasskeyRow), Error> {
    let passkeys = passkeys(view.rows, caller.user)?.into_iter();
    let mut named = passkeys.filter(|(digest, _)| Passkey::id_of(*digest) == id);
    named.next().ok_or(Error::Missing("Passkey"))
}

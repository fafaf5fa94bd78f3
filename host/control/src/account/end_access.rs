//! The end of all access to accounts: what a stolen password, or a restored backup, could open.

use super::session::end_others;
use crate::audit;
use crate::key_end::revoked;
use crate::operator::{Operator, user_named};
use serde::{Deserialize, Serialize};
use wharf_db::{AccountChange, Change, Changes, Read, ReadAccounts, ReadWays, View, WayChange};
use wharf_domain::audit::Origin;
use wharf_domain::error::Error;
use wharf_domain::ids::UserId;

/// The access of a user that ended.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EndedAccess {
    pub email: String,
    pub keys: usize,
    pub sessions: usize,
    pub passkeys: usize,
    pub identities: usize,
    pub password: bool,
    pub invitation: bool,
}

impl Operator<'_> {
    /// Ends all access of a user, or of all users. Their instances go on.
    pub async fn end_access(&self, email: Option<&str>) -> Result<Vec<EndedAccess>, Error> {
        let users = self.db.read(|rows| match email {
            Some(email) => Ok(vec![(user_named(rows, "email", email)?, email.to_owned())]),
            None => rows.users(),
        })?;
        let mut ended = Vec::new();
        for (user, email) in users {
            ended.extend(self.end_access_of(user, email).await?);
        }
        Ok(ended)
    }

    async fn end_access_of(
        &self,
        user: UserId,
        email: String,
    ) -> Result<Option<EndedAccess>, Error> {
        // Memory first: if the operator's program goes away, the write still happens.
        let keys = self.keys.forget(user);
        self.accounts.forget(user, |_| true);
        let written = self
            .db
            .write_essential(move |view| end(view, user, email.clone()));
        let written = written.await;
        match written {
            Ok(_) => drop(self.keys.forget(user)),
            Err(_) => self.keys.remember(keys),
        }
        self.accounts.refresh(user)?;
        written
    }
}

fn end(
    view: &View<'_>,
    user: UserId,
    email: String,
) -> Result<(Option<EndedAccess>, Changes), Error> {
    let rows = view.rows;
    let mut changes = end_others(view, user, None)?;
    let keys = revoked(view, user)?;
    let (passkeys, identities) = (rows.passkeys(user)?, rows.identities(user)?);
    let ended = EndedAccess {
        keys: keys.len(),
        sessions: rows.sessions_of(user)?.len(),
        passkeys: passkeys.len(),
        identities: identities.len(),
        password: rows.password(user)?.is_some(),
        invitation: rows.invite(user)?.is_some(),
        email,
    };
    let nothing = EndedAccess {
        email: ended.email.clone(),
        ..EndedAccess::default()
    };
    if ended == nothing {
        return Ok((None, Changes::none()));
    }
    let passkeys = passkeys
        .into_iter()
        .map(|(digest, _)| WayChange::DropPasskey(user, digest));
    let identities = identities
        .into_iter()
        .map(|(digest, _)| WayChange::DropIdentity(user, digest));
    for key in keys {
        changes = changes.with(Change::PutKey(key));
    }
    for way in passkeys.chain(identities) {
        changes = changes.with(Change::Way(way));
    }
    let origin = Origin::operator();
    let audited = audit::record(
        view,
        &origin,
        "user.end-access",
        Some(user),
        &ended.email,
        "ended",
    );
    changes = changes
        .with(Change::Account(AccountChange::DropInvite(user)))
        .with(Change::Account(AccountChange::DropPassword(user)))
        .with(audited);
    Ok((Some(ended), changes))
}

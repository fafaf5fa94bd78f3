//! The end of all access to accounts, after a theft of a password or the restoration of a backup.

use super::Accounts;
use super::identity::{IDENTITIES, identities};
use super::invite::INVITES;
use super::passkey::{PASSKEYS, passkeys};
use super::password::PASSWORDS;
use super::session::{end_others, sessions_of};
use crate::key_end::revoked;
use crate::key_rows::KEYS;
use serde::{Deserialize, Serialize};
use wharf_db::{Changes, Rows as _, View};
use wharf_domain::audit::Origin;
use wharf_domain::error::Error;
use wharf_domain::ids::UserId;
use wharf_ground::audit;
use wharf_ground::users::{USERS, user_named};

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

impl Accounts {
    /// Ends all access of a user, or of all users. Their instances go on.
    pub async fn end_access(&self, email: Option<&str>) -> Result<Vec<EndedAccess>, Error> {
        let users = self.db.read(|rows| match email {
            Some(email) => Ok(vec![(user_named(rows, "email", email)?, email.to_owned())]),
            None => rows
                .all(&USERS)?
                .map(|row| row.map(|(user, (), email)| (user, email)))
                .collect(),
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
        let valid = self.keys.forget(user);
        self.forget(user, |_| true);
        let written = self
            .db
            .write_essential(move |view| end(view, user, email.clone()));
        let written = written.await;
        match written {
            Ok(_) => drop(self.keys.forget(user)),
            Err(_) => self.keys.remember(valid),
        }
        self.refresh(user)?;
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
    let (passkeys, identities) = (passkeys(rows, user)?, identities(rows, user)?);
    let ended = EndedAccess {
        keys: keys.len(),
        sessions: sessions_of(rows, user)?.len(),
        passkeys: passkeys.len(),
        identities: identities.len(),
        password: rows.get(&PASSWORDS, user)?.is_some(),
        invitation: rows.get(&INVITES, user)?.is_some(),
        email,
    };
    let nothing = EndedAccess {
        email: ended.email.clone(),
        ..EndedAccess::default()
    };
    if ended == nothing {
        return Ok((None, Changes::none()));
    }
    for key in keys {
        changes = changes.put(&KEYS, key.id.clone(), key);
    }
    for (digest, _) in passkeys {
        changes = changes.remove(&PASSKEYS, (user, digest));
    }
    for (digest, _) in identities {
        changes = changes.remove(&IDENTITIES, (user, digest));
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
        .remove(&INVITES, user)
        .remove(&PASSWORDS, user)
        .with(audited);
    Ok((Some(ended), changes))
}

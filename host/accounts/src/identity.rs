//! Sign-in with an identity at a provider of OpenID Connect.

use super::passkey::first;
use super::sign_in_methods::is_last;
use super::{Accounts, AnonymousSender};
use crate::session::{NewSession, id_name};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use wharf_db::{Changes, Rows, Table, tables};
use wharf_domain::error::Error;
use wharf_domain::ids::UserId;
use wharf_domain::time::Timestamp;
use wharf_ground::audit;
use wharf_ground::caller::Caller;
use wharf_ground::users::{USERS, new_user, user_of_email};

tables! {
    /// Identities of a user at providers of OpenID Connect, by digest.
    pub const IDENTITIES: Table<UserId, IdentityDigest, IdentityRow> =
        Table::bounded(b'I', 0, "One of a user at each provider", "Until the user removes it")
            .of(&USERS)
            .indexed(|user, digest, _, entries| entries.put(&IDENTITY_USERS, *digest, user));
    /// Digest of an identity → user.
    pub const IDENTITY_USERS: Table<(), IdentityDigest, UserId> =
        Table::index_of(&IDENTITIES, b'I', 1);
}

/// SHA-256 of an issuer and a subject.
pub type IdentityDigest = [u8; 32];

/// An identity at a provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdentityRow {
    pub issuer: String,
    /// The provider's id of the user.
    pub subject: String,
    /// The verified address at the time of the link.
    pub email: String,
    pub linked_at: Timestamp,
}

/// The identities of a user.
pub(super) fn identities(
    rows: &impl Rows,
    user: UserId,
) -> Result<Vec<(IdentityDigest, IdentityRow)>, Error> {
    rows.under(&IDENTITIES, &user)?.collect()
}

/// An identity that its provider has proven, with an address that it has verified.
#[derive(Debug, Clone)]
pub struct ProvenIdentity {
    pub issuer: String,
    pub subject: String,
    pub email: String,
}

/// An identity as its owner sees it.
#[derive(Debug, Clone)]
pub struct IdentityInfo {
    pub id: String,
    pub issuer: String,
    pub email: String,
    pub linked_at: Timestamp,
}

/// The reason why an identity does not sign in.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// No user has the address, and none is created.
    #[error("no user has the address of the identity")]
    NoUser,
    /// The user with the address is linked to another identity of the provider.
    #[error("the user with the address of the identity is linked to another one")]
    OtherIdentity,
    /// The user is disabled.
    #[error("the user of the identity is disabled")]
    Disabled,
    #[error(transparent)]
    Other(#[from] Error),
}

/// The user that an identity signs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IdentityUser {
    Linked(UserId),
    /// The user has the address of the identity, which is linked now.
    Link(UserId),
    Create,
    /// The user with the address of the identity has another identity of its provider.
    OtherIdentity,
}

impl Accounts {
    /// Signs the user of an identity in. An identity without a user is linked to the user with its
    /// address, who is created if there is none and `create` is set.
    pub async fn sign_in_with_identity(
        &self,
        visitor: &AnonymousSender,
        identity: ProvenIdentity,
        create: bool,
    ) -> Result<NewSession, IdentityError> {
        let digest = digest(&identity.issuer, &identity.subject);
        let expected = match self.db.read(|rows| target(rows, digest, &identity))? {
            IdentityUser::OtherIdentity => return Err(IdentityError::OtherIdentity),
            IdentityUser::Create if !create => return Err(IdentityError::NoUser),
            IdentityUser::Create if self.db.disk().is_low() => return Err(Error::DiskFull.into()),
            target => target,
        };
        let session = self.begin_session_of(visitor, "oidc", move |view, origin| {
            // The rows may have changed meanwhile.
            if target(view.rows, digest, &identity)? != expected {
                return Err(Error::SignInRefused);
            }
            let mut changes = Changes::none();
            let user = match expected {
                IdentityUser::Linked(user) => return Ok((user, changes)),
                IdentityUser::Link(user) => user,
                IdentityUser::OtherIdentity => return Err(Error::SignInRefused),
                IdentityUser::Create => {
                    let (user, put) = new_user(view, &identity.email)?;
                    let email = &identity.email;
                    let audited =
                        audit::record(view, origin, "user.create", Some(user), email, "oidc");
                    changes = changes.with(put).with(audited);
                    user
                }
            };
            let row = IdentityRow {
                issuer: identity.issuer.clone(),
                subject: identity.subject.clone(),
                email: identity.email.clone(),
                linked_at: view.system,
            };
            let (subject, issuer) = (id_of(digest), &identity.issuer);
            let audited =
                audit::record(view, origin, "identity.link", Some(user), &subject, issuer);
            let changes = changes.put(&IDENTITIES, (user, digest), row);
            Ok((user, changes.with(audited)))
        });
        session.await.map_err(|error| match error {
            Error::SignInRefused => IdentityError::Disabled,
            other => other.into(),
        })
    }

    /// Returns the identities of the caller.
    pub fn identities(&self, caller: &Caller) -> Result<Vec<IdentityInfo>, Error> {
        let identities = self.db.read(|rows| identities(rows, caller.user))?;
        let identities = identities.into_iter().map(|(digest, row)| IdentityInfo {
            id: id_of(digest),
            issuer: row.issuer,
            email: row.email,
            linked_at: row.linked_at,
        });
        Ok(identities.collect())
    }

    /// Removes the link of an identity of the caller, unless it is the last way to sign in.
    pub async fn unlink_identity(&self, caller: &Caller, id: &str) -> Result<(), Error> {
        self.require_recent_sign_in(caller)?;
        let (user, origin, id) = (caller.user, caller.origin(), id.to_owned());
        let config = self.config.get();
        let removed = self.db.write_essential(move |view| {
            let identities = identities(view.rows, user)?.into_iter();
            let mut named = identities.filter(|(digest, _)| id_of(*digest) == id);
            let (digest, _) = named.next().ok_or(Error::Missing("Identity"))?;
            if is_last(view.rows, user, digest, &config)? {
                return Err(Error::NotApplicable(
                    "this identity is the last way to sign in to the account; add a passkey or set a \
                     password first",
                ));
            }
            let audited =
                audit::record(view, &origin, "identity.unlink", Some(user), &id, "removed");
            let changes = Changes::none().remove(&IDENTITIES, (user, digest));
            Ok(((), changes.with(audited)))
        });
        removed.await
    }
}

fn target(
    rows: &impl Rows,
    digest: IdentityDigest,
    identity: &ProvenIdentity,
) -> Result<IdentityUser, Error> {
    if let Some(user) = rows.get(&IDENTITY_USERS, digest)? {
        return Ok(IdentityUser::Linked(user));
    }
    let Some(user) = user_of_email(rows, &identity.email)? else {
        return Ok(IdentityUser::Create);
    };
    // A provider may give the address of one person to another person later.
    let identities = identities(rows, user)?;
    let mut identities = identities.iter();
    Ok(
        if identities.any(|(_, row)| row.issuer == identity.issuer) {
            IdentityUser::OtherIdentity
        } else {
            IdentityUser::Link(user)
        },
    )
}

fn digest(issuer: &str, subject: &str) -> IdentityDigest {
    let digest = Sha256::new()
        .chain_update(issuer)
        .chain_update([0])
        .chain_update(subject);
    digest.finalize().into()
}

fn id_of(digest: IdentityDigest) -> String {
    id_name(first(digest))
}

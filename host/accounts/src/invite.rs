//! Invitations: links by which users get a password or a passkey. A token is `USER.SECRET`. The database stores
//! only the SHA-256 of the whole token, as the secret has 256 random bits.

use super::disabled::is_disabled;
use super::password::PASSWORDS;
use super::session::end_others;
use super::{Accounts, AnonymousSender, password};
use crate::session::NewSession;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use wharf_db::{Changes, Rows, Table, tables};
use wharf_domain::audit::Origin;
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::ids::UserId;
use wharf_domain::secret::SecretText;
use wharf_domain::time::{Timestamp, rfc3339};
use wharf_ground::audit;
use wharf_ground::random::random_text;
use wharf_ground::users::{USERS, new_user, user_of_email};

/// The time in milliseconds in which an invitation can be accepted: 72 hours.
const LIFETIME_MS: i64 = 72 * 3_600_000;

tables! {
    /// The invitation of a user that is not accepted yet.
    pub const INVITES: Table<UserId, (), InviteRow> =
        Table::bounded(b'U', 0, "One row of a user, made by the operator",
            "Until it is accepted or replaced").of(&USERS);
}

/// An invitation. Its token is not stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InviteRow {
    /// SHA-256 of the whole token.
    pub sha256: [u8; 32],
    /// The time from which on it is not valid.
    pub expires_at: Timestamp,
}

/// An invitation for the operator, who passes it on.
#[derive(Serialize, Deserialize)]
pub struct Invitation {
    /// The link of the console. Its fragment has the token, and never reaches a server's log.
    pub url: SecretText,
    #[serde(with = "rfc3339")]
    pub expires_at: Timestamp,
}

/// A valid invitation.
#[derive(Debug, Clone)]
pub struct ValidInvitation {
    pub user: UserId,
    pub email: String,
    pub expires_at: Timestamp,
}

impl Accounts {
    /// Invites a user for the operator. A user is created if no user has the address.
    /// An earlier invitation becomes invalid.
    pub async fn invite(&self, email: &str) -> Result<Invitation, Error> {
        let (mut errors, config) = (FieldErrors::default(), self.config.get());
        if !config.session.enabled {
            errors.add("session.enabled", "is false, so nobody can sign in");
        }
        if config.base_url.is_none() && config.listen.port() == 0 {
            errors.add(
                "base_url",
                "must be set: the port of `listen` is not known before the server runs",
            );
        }
        errors.into_result()?;
        let secret = SecretText::new(random_text::<32>()?);
        let (email, part) = (email.to_owned(), secret.clone());
        let decided = self.db.write_essential(move |view| {
            let mut changes = Changes::none();
            let user = match user_of_email(view.rows, &email)? {
                Some(user) => user,
                None => {
                    let (user, put) = new_user(view, &email)?;
                    changes = changes.with(put);
                    user
                }
            };
            if is_disabled(view.rows, user)? {
                let message = "this user is disabled: run `wharf user enable` first";
                return Err(FieldErrors::one("email", message).into());
            }
            let expires_at = Timestamp(view.system.0.saturating_add(LIFETIME_MS));
            let row = InviteRow {
                sha256: digest(&token(user, &part)),
                expires_at,
            };
            let (origin, until) = (Origin::operator(), expires_at.to_rfc3339());
            let audited = audit::record(view, &origin, "user.invite", Some(user), &email, &until);
            Ok((
                (user, expires_at),
                changes.put(&INVITES, user, row).with(audited),
            ))
        });
        let (user, expires_at) = decided.await?;
        let (base_url, token) = (config.base_url(), token(user, &secret));
        Ok(Invitation {
            url: SecretText::new(format!("{base_url}/invite#{}", token.expose())),
            expires_at,
        })
    }

    /// Returns the invitation of a token, if it is valid.
    pub fn invitation(&self, token: &str) -> Result<ValidInvitation, Error> {
        let user = user_of(token).ok_or_else(invalid)?;
        self.db.read(|rows| {
            let row = valid(rows, user, token, self.clock.system())?;
            Ok(ValidInvitation {
                user,
                email: rows.get(&USERS, user)?.unwrap_or_default(),
                expires_at: row.expires_at,
            })
        })
    }

    /// Accepts an invitation with a password, and signs in. The earlier sessions of the user end.
    pub async fn accept_with_password(
        &self,
        visitor: &AnonymousSender,
        token: SecretText,
        new: SecretText,
    ) -> Result<NewSession, Error> {
        // Only the bearer of an invitation costs a hash.
        let user = self.invitation(token.expose())?.user;
        password::check("password", &new)?;
        let row = self.hashing.hash(new).await?;
        self.forget(user, |_| true);
        let accepted = self.begin_session(visitor, user, "invitation", move |view, _| {
            valid(view.rows, user, token.expose(), view.system)?;
            Ok(end_others(view, user, None)?.remove(&INVITES, user).put(
                &PASSWORDS,
                user,
                row.clone(),
            ))
        });
        accepted.await
    }
}

/// The invitation of a token, which must be the user's and valid.
pub(super) fn valid(
    rows: &impl Rows,
    user: UserId,
    token: &str,
    now: Timestamp,
) -> Result<InviteRow, Error> {
    let row = rows.get(&INVITES, user)?.ok_or_else(invalid)?;
    let right = bool::from(row.sha256.ct_eq(&digest(&SecretText::new(token))));
    if right && now < row.expires_at && !is_disabled(rows, user)? {
        Ok(row)
    } else {
        Err(invalid())
    }
}

fn invalid() -> Error {
    let message = "is not valid: it was used, replaced by a later one, or has expired; ask the operator \
                   for a new invitation";
    FieldErrors::one("token", message).into()
}

fn token(user: UserId, secret: &SecretText) -> SecretText {
    SecretText::new(format!("{}.{}", user.0, secret.expose()))
}

fn user_of(token: &str) -> Option<UserId> {
    token.split_once('.')?.0.parse().ok().map(UserId)
}

fn digest(token: &SecretText) -> [u8; 32] {
    Sha256::digest(token.expose().as_bytes()).into()
}

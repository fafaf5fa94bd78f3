//! API keys: `wharf_<id>_<secret>`. The id is public; of the whole only the SHA-256 is kept. The
//! secret has 256 random bits, so a slow hash would protect nothing.

use super::clock::now;
use super::vault::fill;
use crate::db::{Change, Changes, Db, KeyRow, Read};
use crate::domain::error::{Error, FieldErrors};
use crate::domain::ids::UserId;
use crate::domain::secret::SecretText;
use crate::domain::time::Timestamp;
use arc_swap::ArcSwap;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::Arc;
use subtle::ConstantTimeEq;

/// Lets secret scanners recognise a leaked key.
const PREFIX: &str = "wharf";

/// Who makes a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The user.
    pub user: UserId,
    /// Their e-mail address.
    pub email: Arc<str>,
    /// Identifies the request in the log.
    pub request_id: Arc<str>,
}

/// A new key, shown this once.
#[derive(Debug)]
pub struct ApiKey {
    /// Names it in lists and for revocation.
    pub id: String,
    /// The whole key.
    pub key: SecretText,
}

/// A key in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyInfo {
    /// Public id.
    pub id: String,
    /// Whose it is.
    pub email: String,
    /// What its owner calls it.
    pub name: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
}

/// All keys: durable in the database, valid ones in memory for every request.
pub struct Keys {
    db: Db,
    /// Replaced whole, which is seldom: a request that looks at them writes nothing.
    valid: ArcSwap<Valid>,
}

/// Digest and owner of each valid key, by its id.
type Valid = HashMap<String, ([u8; 32], Owner)>;

#[derive(Clone)]
struct Owner {
    user: UserId,
    email: Arc<str>,
}

impl Keys {
    /// Reads the valid ones.
    pub fn load(db: Db) -> Result<Self, Error> {
        let valid = db.read(|rows| {
            let mut valid = HashMap::new();
            for key in rows.all_keys()? {
                if key.revoked_at.is_none()
                    && let Some(email) = rows.email_of(key.user)?
                {
                    let owner = Owner {
                        user: key.user,
                        email: email.into(),
                    };
                    valid.insert(key.id, (key.sha256, owner));
                }
            }
            Ok(valid)
        })?;
        Ok(Self {
            db,
            valid: ArcSwap::from_pointee(valid),
        })
    }

    /// Who has this key. Takes as long for a wrong secret as for the right one.
    pub fn authenticate(&self, key: &str, request_id: Arc<str>) -> Option<Caller> {
        let id = id_of(key)?;
        let digest: [u8; 32] = Sha256::digest(key.as_bytes()).into();
        let valid = self.valid.load();
        let (sha256, owner) = valid.get(id)?;
        bool::from(sha256.ct_eq(&digest)).then(|| Caller {
            user: owner.user,
            email: Arc::clone(&owner.email),
            request_id,
        })
    }

    /// Makes a key for a user, and the user if there is none with this address.
    pub async fn new_key(&self, email: &str, name: &str) -> Result<ApiKey, Error> {
        check(email, name)?;
        let (id, key) = random_key()?;
        let sha256: [u8; 32] = Sha256::digest(key.expose().as_bytes()).into();
        let (row_id, row_email, row_name) = (id.clone(), email.to_owned(), name.to_owned());
        let user = self
            .db
            .write(move |view| {
                let mut changes = Changes::none();
                let user = match view.rows.user_of_email(&row_email)? {
                    Some(user) => user,
                    None => {
                        let user = view.rows.next_user()?;
                        changes = changes.with(Change::PutUser(user, row_email.clone()));
                        user
                    }
                };
                let row = KeyRow {
                    id: row_id.clone(),
                    user,
                    name: row_name.clone(),
                    sha256,
                    created_at: now(),
                    revoked_at: None,
                };
                Ok((user, changes.with(Change::PutKey(row))))
            })
            .await?;
        let owner = Owner {
            user,
            email: email.into(),
        };
        self.put_valid(&id, &(sha256, owner));
        Ok(ApiKey { id, key })
    }

    /// All keys, in order of their ids.
    pub fn list(&self) -> Result<Vec<KeyInfo>, Error> {
        self.db.read(|rows| {
            let mut list = Vec::new();
            for key in rows.all_keys()? {
                list.push(KeyInfo {
                    email: rows.email_of(key.user)?.unwrap_or_default(),
                    id: key.id,
                    name: key.name,
                    created_at: key.created_at,
                    revoked_at: key.revoked_at,
                });
            }
            Ok(list)
        })
    }

    /// Makes a key invalid at once. Revoking it again changes nothing.
    pub async fn revoke(&self, id: &str) -> Result<(), Error> {
        let wanted = id.to_owned();
        // First: should the caller go away meanwhile, the write is done all the same.
        let before = self.change_valid(|valid| drop(valid.remove(id)));
        let written = self
            .db
            .write(move |view| {
                let mut row = view.rows.key(&wanted)?.ok_or(Error::NotFound)?;
                if row.revoked_at.is_some() {
                    return Ok(((), Changes::none()));
                }
                row.revoked_at = Some(now());
                Ok(((), Changes::none().with(Change::PutKey(row))))
            })
            .await;
        // Of two who revoke it at once, the one that took it away gives it back.
        if let (Err(_), Some(still_valid)) = (&written, before.get(id)) {
            self.put_valid(id, still_valid);
        }
        written
    }

    fn put_valid(&self, id: &str, key: &([u8; 32], Owner)) {
        self.change_valid(|valid| drop(valid.insert(id.to_owned(), key.clone())));
    }

    /// What was valid before.
    fn change_valid(&self, change: impl Fn(&mut Valid)) -> Arc<Valid> {
        self.valid.rcu(|valid| {
            let mut changed = Valid::clone(valid);
            change(&mut changed);
            changed
        })
    }
}

fn id_of(key: &str) -> Option<&str> {
    let (prefix, rest) = key.split_once('_')?;
    let (id, _) = rest.split_once('_')?;
    (prefix == PREFIX).then_some(id)
}

fn random_key() -> Result<(String, SecretText), Error> {
    let (mut id, mut secret) = ([0; 8], [0; 32]);
    fill(&mut id)?;
    fill(&mut secret)?;
    let id: String = id.iter().map(|b| format!("{b:02x}")).collect();
    let key = format!("{PREFIX}_{id}_{}", URL_SAFE_NO_PAD.encode(secret));
    Ok((id, SecretText::new(key)))
}

/// Addresses are names here, nothing is sent to them: only what could not be one is refused.
fn check(email: &str, name: &str) -> Result<(), Error> {
    let mut errors = FieldErrors::default();
    let plain = |text: &str| !text.chars().any(|c| c.is_control() || c.is_whitespace());
    let address = email
        .rsplit_once('@')
        .is_some_and(|(local, domain)| !local.is_empty() && !domain.is_empty());
    if !address || !plain(email) || email.len() > 254 {
        errors.add(
            "email",
            "must be an e-mail address of at most 254 characters",
        );
    }
    if name.chars().any(char::is_control) || name.len() > 100 {
        errors.add("name", "must be at most 100 printable characters");
    }
    Ok(errors.into_result()?)
}

//! API keys of the form `wharf_<id>_<secret>`. The id is public. The database stores only the SHA-256
//! of the whole key. A slow hash would add nothing, since the secret has 256 random bits.

use super::clock::now;
use super::condition::Condition;
use super::vault::fill;
use arc_swap::ArcSwap;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::Arc;
use subtle::ConstantTimeEq;
use wharf_db::{Change, Changes, Db, KeyRow, Read};
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::ids::UserId;
use wharf_domain::secret::SecretText;
use wharf_domain::time::Timestamp;

/// Prefix of all keys, by which secret scanners recognize a leaked key.
const PREFIX: &str = "wharf";

/// The authenticated user of a request.
#[derive(Debug, Clone)]
pub struct Caller {
    pub user: UserId,
    pub email: Arc<str>,
    /// Public id of the key.
    pub key_id: Arc<str>,
    /// Id of the request in the log.
    pub request_id: Arc<str>,
    /// Condition on the instance that the request changes.
    pub condition: Condition,
}

/// A new key. Its secret is not stored and cannot be shown again.
#[derive(Debug)]
pub struct ApiKey {
    /// Public id, used in lists and for revocation.
    pub id: String,
    /// The whole key.
    pub key: SecretText,
}

/// The public data of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyInfo {
    pub id: String,
    /// E-mail address of the owner.
    pub email: String,
    /// Name that the operator gave the key.
    pub name: String,
    pub created_at: Timestamp,
    pub revoked_at: Option<Timestamp>,
}

/// The API keys. The database stores all of them; memory holds the valid keys for authentication.
pub struct Keys {
    db: Db,
    /// The map is replaced as a whole on each change, so that authentication needs no lock.
    valid: ArcSwap<Valid>,
}

/// The digest and owner of each valid key by id.
type Valid = HashMap<String, ([u8; 32], Owner)>;

#[derive(Clone)]
struct Owner {
    user: UserId,
    email: Arc<str>,
    key_id: Arc<str>,
}

impl Keys {
    /// Loads the valid keys from the database.
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
                        key_id: key.id.as_str().into(),
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

    /// Returns the caller with a key, if the key is valid. Secrets are compared in constant time.
    pub fn authenticate(&self, key: &str, request_id: Arc<str>) -> Option<Caller> {
        let id = id_of(key)?;
        let digest: [u8; 32] = Sha256::digest(key.as_bytes()).into();
        let valid = self.valid.load();
        let (sha256, owner) = valid.get(id)?;
        bool::from(sha256.ct_eq(&digest)).then(|| Caller {
            user: owner.user,
            email: Arc::clone(&owner.email),
            key_id: Arc::clone(&owner.key_id),
            request_id,
            condition: Condition::default(),
        })
    }

    /// Creates a key for a user, and the user if no user has the address.
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
            key_id: id.as_str().into(),
        };
        self.put_valid(&id, &(sha256, owner));
        Ok(ApiKey { id, key })
    }

    /// Returns all keys, ordered by id.
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

    /// Revokes a key with immediate effect. Revoking it again changes nothing.
    pub async fn revoke(&self, id: &str) -> Result<(), Error> {
        let wanted = id.to_owned();
        // Change memory first: if the caller drops this future, the write still happens.
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
        // If the write failed, only the call that removed the key restores it.
        if let (Err(_), Some(still_valid)) = (&written, before.get(id)) {
            self.put_valid(id, still_valid);
        }
        written
    }

    fn put_valid(&self, id: &str, key: &([u8; 32], Owner)) {
        self.change_valid(|valid| drop(valid.insert(id.to_owned(), key.clone())));
    }

    /// Changes the valid keys and returns the map before the change.
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

/// Checks the form of an address and a name. The check of the address is loose, since it only
/// identifies a user and receives no mail.
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

//! API keys of the form `wharf_<id>_<secret>`. The id is public. The database stores only the SHA-256
//! of the whole key. A slow hash would add nothing, since the secret has 256 random bits.

use super::access::Access;
use super::key_end::{make_room, unrevoked};
use super::key_rows::{KEY_TERMS, KEY_USES, KEYS, KeyRow, KeyTerms, all_keys};
use super::last_use::LastUse;
use super::recent_sign_in::require_access;
use crate::last_use;
use arc_swap::ArcSwap;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::Arc;
use subtle::ConstantTimeEq;
use wharf_db::{Changes, Db, Rows, View};
use wharf_domain::audit::Origin;
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::ids::UserId;
use wharf_domain::scope::{Scope, Scopes};
use wharf_domain::secret::SecretText;
use wharf_domain::time::{Timestamp, rfc3339};
use wharf_ground::audit;
use wharf_ground::caller::{Caller, Credential};
use wharf_ground::clock::Clock;
use wharf_ground::random::{fill, random_text};
use wharf_ground::users::{USERS, new_user, user_of_email};

/// Prefix of all keys, by which secret scanners recognize a leaked key.
const PREFIX: &str = "wharf";

/// The most valid keys of one user. Each has a rate of its own and is held in memory.
const MAX_KEYS: usize = 100;

/// The terms of a key without a row of its own, as all keys were before there were terms.
pub(super) const UNLIMITED: KeyTerms = KeyTerms {
    scopes: Scopes::ALL,
    expires_at: None,
};

/// A request for a key.
#[derive(Debug, Clone)]
pub struct KeyRequest {
    /// E-mail address of the user.
    pub email: String,
    pub name: String,
    pub scopes: Scopes,
    pub expires_at: Option<Timestamp>,
}

/// A new key. Its secret is not stored and cannot be shown again.
#[derive(Debug)]
pub struct ApiKey {
    /// Public id, used in lists and for revocation.
    pub id: String,
    /// The whole key.
    pub key: SecretText,
    /// Time of creation.
    pub created_at: Timestamp,
}

/// The public data of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyInfo {
    pub id: String,
    /// E-mail address of the owner.
    pub email: String,
    /// Name that its creator gave the key.
    pub name: String,
    pub scopes: Vec<Scope>,
    #[serde(with = "rfc3339")]
    pub created_at: Timestamp,
    #[serde(with = "rfc3339::option")]
    pub expires_at: Option<Timestamp>,
    /// Last use, to the minute.
    #[serde(with = "rfc3339::option")]
    pub last_used_at: Option<Timestamp>,
    #[serde(with = "rfc3339::option")]
    pub revoked_at: Option<Timestamp>,
}

/// The API keys. The database stores all of them; memory holds the valid keys for authentication.
pub struct ApiKeys {
    clock: Clock,
    pub(super) access: Access,
    pub(super) db: Db,
    /// The map is replaced as a whole on each change, so that authentication needs no lock.
    pub(super) valid: ArcSwap<ValidKeys>,
}

/// The valid keys by id.
pub(super) type ValidKeys = HashMap<String, Arc<ValidKey>>;

/// A key that is not revoked.
pub(super) struct ValidKey {
    id: Arc<str>,
    sha256: [u8; 32],
    pub(super) user: UserId,
    email: Arc<str>,
    terms: KeyTerms,
    pub(super) last_use: LastUse,
}

impl ValidKey {
    fn new(row: &KeyRow, email: &str, terms: KeyTerms, last_use: Option<Timestamp>) -> Self {
        Self {
            id: row.id.as_str().into(),
            sha256: row.sha256,
            user: row.user,
            email: email.into(),
            terms,
            last_use: LastUse::new(last_use),
        }
    }
}

impl ApiKeys {
    /// Loads the valid keys from the database.
    pub fn load(db: Db, clock: Clock) -> Result<Self, Error> {
        let valid = db.read(|rows| {
            let mut valid = HashMap::new();
            for row in all_keys(rows)? {
                if row.revoked_at.is_none()
                    && let Some(email) = rows.get(&USERS, row.user)?
                {
                    let terms = rows.get(&KEY_TERMS, &*row.id)?.unwrap_or(UNLIMITED);
                    let last_use = rows.get(&KEY_USES, &*row.id)?;
                    let key = ValidKey::new(&row, &email, terms, last_use);
                    valid.insert(row.id, Arc::new(key));
                }
            }
            Ok(valid)
        })?;
        Ok(Self {
            access: Access::load(&db)?,
            db,
            clock,
            valid: ArcSwap::from_pointee(valid),
        })
    }

    /// Returns the caller with a key, if the key is valid. Secrets are compared in constant time.
    pub fn authenticate(&self, key: &str, request_id: Arc<str>) -> Option<Caller> {
        let id = id_of(key)?;
        let digest: [u8; 32] = Sha256::digest(key.as_bytes()).into();
        let valid = self.valid.load();
        let known = valid.get(id)?;
        let now = self.clock.system();
        if !bool::from(known.sha256.ct_eq(&digest)) || !self.holds(known, now) {
            return None;
        }
        known.last_use.set(now);
        Some(Caller {
            user: known.user,
            email: Arc::clone(&known.email),
            key_id: Arc::clone(&known.id),
            credential: Credential::Key,
            scopes: known.terms.scopes,
            expires_at: known.terms.expires_at,
            peer: None,
            request_id,
        })
    }

    fn holds(&self, key: &ValidKey, now: Timestamp) -> bool {
        !expired(&key.terms, now) && !self.access.is_disabled(key.user)
    }

    /// Returns whether a key is neither revoked nor expired, nor its user disabled.
    pub fn is_valid(&self, id: &str) -> bool {
        let valid = self.valid.load();
        valid
            .get(id)
            .is_some_and(|key| self.holds(key, self.clock.system()))
    }

    /// Returns whether a key is not revoked. It may have expired.
    pub(super) fn is_known(&self, id: &str) -> bool {
        self.valid.load().contains_key(id)
    }

    /// Returns the time of creation of a key.
    pub fn created_at(&self, id: &str) -> Result<Option<Timestamp>, Error> {
        let row = self.db.read(|rows| rows.get(&KEYS, id))?;
        Ok(row.map(|row| row.created_at))
    }

    /// Creates a key for a user, and the user if no user has the address.
    pub async fn new_key(&self, new: KeyRequest, origin: &Origin) -> Result<ApiKey, Error> {
        self.create(new, origin, None).await
    }

    /// Creates a key. That of a caller is only for a user with less than the limit of keys, of which
    /// expired ones make room.
    async fn create(
        &self,
        new: KeyRequest,
        origin: &Origin,
        caller: Option<&Caller>,
    ) -> Result<ApiKey, Error> {
        check(&new, self.clock.system())?;
        let (id, key) = random_key()?;
        let sha256: [u8; 32] = Sha256::digest(key.expose().as_bytes()).into();
        let terms = KeyTerms {
            scopes: new.scopes,
            expires_at: new.expires_at,
        };
        let (row_id, origin, by) = (id.clone(), origin.clone(), caller.cloned());
        let most = caller.map(|_| MAX_KEYS);
        let decide = move |view: &View<'_>| {
            if let Some(caller) = &by {
                require_access(view, caller)?;
            }
            let mut changes = Changes::none();
            let mut expired = Vec::new();
            let user = match user_of_email(view.rows, &new.email)? {
                Some(user) => {
                    expired = make_room(view, user, most)?;
                    user
                }
                None => {
                    let (user, put) = new_user(view, &new.email)?;
                    changes = changes.with(put);
                    user
                }
            };
            for id in &expired {
                changes = changes.remove(&KEYS, id.clone());
            }
            let row = KeyRow {
                id: row_id.clone(),
                user,
                name: new.name.clone(),
                sha256,
                created_at: view.system,
                revoked_at: None,
            };
            let audited = audit::record(view, &origin, "key.new", Some(user), &row_id, "created");
            let changes = changes
                .put(&KEYS, row_id.clone(), row.clone())
                .put(&KEY_TERMS, row_id.clone(), terms)
                .with(audited);
            Ok(((row, expired), changes))
        };
        let (row, expired) = match most {
            Some(_) => self.db.write(decide).await?,
            // The operator gives it.
            None => self.db.write_essential(decide).await?,
        };
        let created_at = row.created_at;
        let email = self.db.read(|rows| rows.get(&USERS, row.user))?;
        let made = ValidKey::new(&row, &email.unwrap_or_default(), terms, None);
        let made = Arc::new(made);
        self.change_valid(|valid| {
            expired.iter().for_each(|id| drop(valid.remove(id)));
            valid.insert(id.clone(), Arc::clone(&made));
        });
        // A revocation between the write and the insertion has found nothing in memory.
        let row = self.db.read(|rows| rows.get(&KEYS, &*id))?;
        if row.is_none_or(|row| row.revoked_at.is_some()) {
            self.change_valid(|valid| drop(valid.remove(&id)));
        }
        Ok(ApiKey {
            id,
            key,
            created_at,
        })
    }

    /// Creates a key for the user of another key. It has no scope that the other key lacks or that only
    /// the operator gives, and does not outlive it.
    pub async fn derive(
        &self,
        caller: &Caller,
        name: String,
        scopes: Option<Scopes>,
        expires_at: Option<Timestamp>,
    ) -> Result<(ApiKey, KeyRequest), Error> {
        let mut errors = FieldErrors::default();
        let own = caller.scopes.intersection(Scopes::OF_USERS);
        let scopes = scopes.unwrap_or(own);
        let lacking: Vec<_> = scopes
            .iter()
            .filter(|scope| !own.has(*scope))
            .map(Scope::as_str)
            .collect();
        if !lacking.is_empty() {
            let lacking = lacking.join(", ");
            errors.add(
                "scopes",
                format!("this key cannot give the scope {lacking}"),
            );
        }
        let expires_at = expires_at.or(caller.expires_at);
        if let (Some(new), Some(own)) = (expires_at, caller.expires_at)
            && new > own
        {
            let own = own.to_rfc3339();
            errors.add(
                "expires_at",
                format!("must not be after that of this key, {own}"),
            );
        }
        errors.into_result()?;
        let new = KeyRequest {
            email: caller.email.to_string(),
            name,
            scopes,
            expires_at,
        };
        let key = self
            .create(new.clone(), &caller.origin(), Some(caller))
            .await?;
        Ok((key, new))
    }

    /// Returns all keys, ordered by id, or those of one user that are not revoked.
    pub fn list(&self, user: Option<UserId>) -> Result<Vec<KeyInfo>, Error> {
        let valid = self.valid.load();
        self.db.read(|rows| {
            let mut list = Vec::new();
            let keys = match user {
                Some(user) => unrevoked(rows, user)?,
                None => all_keys(rows)?,
            };
            for key in keys {
                let terms = rows.get(&KEY_TERMS, &*key.id)?.unwrap_or(UNLIMITED);
                let written = rows.get(&KEY_USES, &*key.id)?;
                let last_use = valid.get(&key.id).and_then(|key| key.last_use.get());
                list.push(KeyInfo {
                    email: rows.get(&USERS, key.user)?.unwrap_or_default(),
                    scopes: terms.scopes.iter().collect(),
                    expires_at: terms.expires_at,
                    last_used_at: last_use.or(written),
                    id: key.id,
                    name: key.name,
                    created_at: key.created_at,
                    revoked_at: key.revoked_at,
                });
            }
            Ok(list)
        })
    }

    /// Revokes a key with immediate effect; only if it is the user's, if one is given. Revoking it again
    /// changes nothing.
    pub async fn revoke(
        &self,
        id: &str,
        user: Option<UserId>,
        origin: &Origin,
    ) -> Result<(), Error> {
        // A user does not see keys of others, nor those that are revoked.
        let is_hidden = |row: KeyRow| match user {
            Some(user) => user != row.user || row.revoked_at.is_some(),
            None => false,
        };
        let row = self.db.read(|rows| rows.get(&KEYS, id))?;
        if row.is_none_or(is_hidden) {
            return Err(Error::KeyNotFound);
        }
        // Change memory first: if the caller drops this future, the write still happens.
        let (wanted, origin) = (id.to_owned(), origin.clone());
        let before = self.change_valid(|valid| drop(valid.remove(id)));
        self.access.notify();
        let written = self
            .db
            .write_essential(move |view| {
                let mut row = view.rows.get(&KEYS, &*wanted)?.ok_or(Error::KeyNotFound)?;
                if row.revoked_at.is_some() {
                    return Ok(((), Changes::none()));
                }
                row.revoked_at = Some(view.system);
                let user = Some(row.user);
                let audited = audit::record(view, &origin, "key.revoke", user, &wanted, "revoked");
                let changes = Changes::none()
                    .put(&KEYS, wanted.clone(), row)
                    .with(audited);
                Ok(((), changes))
            })
            .await;
        match (&written, before.get(id)) {
            // If the write failed, only the call that removed the key restores it.
            (Err(_), Some(still_valid)) => self.put_valid(id, still_valid),
            (Err(_), None) => {}
            // The creation of the key may have put it into memory meanwhile.
            (Ok(()), _) => {
                self.change_valid(|valid| drop(valid.remove(id)));
                self.access.notify();
            }
        }
        written
    }

    fn put_valid(&self, id: &str, key: &Arc<ValidKey>) {
        self.change_valid(|valid| drop(valid.insert(id.to_owned(), Arc::clone(key))));
    }

    /// Changes the valid keys and returns the map before the change.
    pub(super) fn change_valid(&self, change: impl Fn(&mut ValidKeys)) -> Arc<ValidKeys> {
        self.valid.rcu(|valid| {
            let mut changed = ValidKeys::clone(valid);
            change(&mut changed);
            changed
        })
    }

    /// Writes the last uses.
    pub(super) async fn write_uses(&self) -> Result<(), Error> {
        let valid = self.valid.load_full();
        let uses = valid.iter();
        let uses = uses.map(|(id, key)| ((id.clone(), ()), &key.last_use));
        last_use::write(&self.db, &KEYS, &KEY_USES, uses).await
    }
}

pub(super) fn expired(terms: &KeyTerms, now: Timestamp) -> bool {
    terms.expires_at.is_some_and(|at| at <= now)
}

fn id_of(key: &str) -> Option<&str> {
    let (prefix, rest) = key.split_once('_')?;
    let (id, _) = rest.split_once('_')?;
    (prefix == PREFIX).then_some(id)
}

fn random_key() -> Result<(String, SecretText), Error> {
    let mut id = [0; 8];
    fill(&mut id)?;
    let id: String = id.iter().map(|b| format!("{b:02x}")).collect();
    let key = format!("{PREFIX}_{id}_{}", random_text::<32>()?);
    Ok((id, SecretText::new(key)))
}

/// Checks the fields of a new key.
fn check(new: &KeyRequest, now: Timestamp) -> Result<(), Error> {
    let name = &new.name;
    let mut errors = FieldErrors::default();
    if name.chars().any(char::is_control) || name.chars().count() > 100 {
        errors.add("name", "must be at most 100 printable characters");
    }
    if new.scopes.iter().next().is_none() {
        errors.add("scopes", "must have at least one scope");
    }
    if new.expires_at.is_some_and(|at| at <= now) {
        errors.add("expires_at", "must be in the future");
    }
    Ok(errors.into_result()?)
}

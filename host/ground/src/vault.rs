//! Encryption of the secrets in the database. The key file is readable by Wharf's account only.
//!
//! A ciphertext is a mark, the fingerprint of its key, a nonce, and the encrypted text. Ciphertexts of
//! format 3 begin with the nonce, so every key is tried on them.

use super::audit;
use super::keyring::{FILE, KeyFileError, Keyring, SecretKey};
use super::random::fill;
use arc_swap::ArcSwap;
use chacha20poly1305::XNonce;
use chacha20poly1305::aead::{Aead, Payload};
use parking_lot::Mutex;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wharf_db::{Changes, Db, KEY_FINGERPRINT, Read as _};
use wharf_domain::audit::Origin;
use wharf_domain::error::Error;
use wharf_domain::ids::InstanceId;
use wharf_domain::instance::Instance;
use wharf_domain::secret::{Encrypted, Fingerprint, InstanceSecrets, SecretKind, SecretText};

/// Length of an XChaCha20 nonce in bytes, which is long enough for random nonces.
const NONCE: usize = 24;
/// The first bytes of a ciphertext with a fingerprint.
const MARK: &[u8] = b"key1";
/// The most instances whose unreadable secret is logged.
const MAX_LOGGED: usize = 10_000;

/// Encrypts and decrypts secrets. Clones share their keys.
#[derive(Clone)]
pub struct Vault(Arc<Shared>);

struct Shared {
    path: PathBuf,
    keys: ArcSwap<Keyring>,
    /// Held by the rotation.
    rotating: tokio::sync::Mutex<()>,
    /// The instances whose unreadable password was logged.
    logged: Mutex<HashSet<InstanceId>>,
}

/// An error that keeps the secrets closed.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// The file cannot be used.
    #[error(transparent)]
    File(#[from] KeyFileError),
    /// The file is missing, and the database names its key.
    #[error(
        "key file {path} is missing; the database needs the key with the fingerprint {expected}: \
         restore the file from its backup"
    )]
    Missing {
        path: PathBuf,
        expected: Fingerprint,
    },
    /// The file is missing, and the database has secrets of an unknown key.
    #[error(
        "key file {0} is missing, and the database has secrets that only its key decrypts: restore \
         the file from its backup"
    )]
    MissingUnknown(PathBuf),
    /// The file has another key.
    #[error(
        "key file {path} has the key with the fingerprint {found}; the database needs the one with \
         the fingerprint {expected}: restore the file from its backup"
    )]
    Wrong {
        path: PathBuf,
        found: Fingerprint,
        expected: Fingerprint,
    },
    /// The file's key decrypts no secret of a database that names no key.
    #[error(
        "key file {path} has the key with the fingerprint {found}, which decrypts no secret of the \
         database: restore the file from its backup"
    )]
    Useless { path: PathBuf, found: Fingerprint },
    /// The database cannot be read or written.
    #[error(transparent)]
    Database(#[from] Error),
}

impl Vault {
    /// Opens `secret.key` in a directory. The file is made only for a database without secrets.
    pub async fn open(dir: &Path, db: &Db) -> Result<Self, VaultError> {
        let path = dir.join(FILE);
        let expected = db.read(|rows| rows.key_fingerprint())?;
        let keys = match (Keyring::read(&path)?, expected) {
            (Some(keys), _) => keys,
            (None, Some(expected)) => return Err(VaultError::Missing { path, expected }),
            (None, None) => {
                if db.read(|rows| rows.any_instance(|_| true))? {
                    return Err(VaultError::MissingUnknown(path));
                }
                let keys = Keyring::of(SecretKey::generate()?);
                keys.write(&path)?;
                keys
            }
        };
        let vault = Self::new(path, keys);
        vault.check(db, expected)?;
        let fingerprint = vault.fingerprint();
        // A rotation that was interrupted after its first step has not noted its key yet.
        if expected != Some(fingerprint) {
            vault.note(db, None).await?;
        }
        if !vault.0.keys.load().earlier.is_empty() {
            tracing::warn!(
                "a rotation of the secrets was interrupted: complete it with `wharf secrets rotate`"
            );
        }
        Ok(vault)
    }

    /// Reads the keys for a check of the database, and makes none. Returns none without a file if the
    /// database needs no key.
    pub fn read(dir: &Path, db: &Db) -> Result<Option<Self>, VaultError> {
        let path = dir.join(FILE);
        let expected = db.read(|rows| rows.key_fingerprint())?;
        let Some(keys) = Keyring::read(&path)? else {
            return match expected {
                Some(expected) => Err(VaultError::Missing { path, expected }),
                None if db.read(|rows| rows.any_instance(|_| true))? => {
                    Err(VaultError::MissingUnknown(path))
                }
                None => Ok(None),
            };
        };
        let vault = Self::new(path, keys);
        vault.check(db, expected)?;
        Ok(Some(vault))
    }

    fn new(path: PathBuf, keys: Keyring) -> Self {
        Self(Arc::new(Shared {
            path,
            keys: ArcSwap::from_pointee(keys),
            rotating: tokio::sync::Mutex::default(),
            logged: Mutex::default(),
        }))
    }

    /// Refuses keys that are not those of the database.
    fn check(&self, db: &Db, expected: Option<Fingerprint>) -> Result<(), VaultError> {
        let keys = self.0.keys.load();
        let (path, found) = (self.0.path.clone(), keys.current.fingerprint);
        match expected {
            Some(expected) if keys.keys().any(|key| key.fingerprint == expected) => Ok(()),
            Some(expected) => Err(VaultError::Wrong {
                path,
                found,
                expected,
            }),
            None => {
                let has = |i: &Instance| !i.password.0.is_empty();
                let opens = |i: &Instance| has(i) && self.decrypt_text(i.id, &i.password).is_ok();
                let useless = db.read(|rows| {
                    let any = rows.any_instance(|instance| has(instance))?;
                    Ok(any && !rows.any_instance(|instance| opens(instance))?)
                })?;
                if useless {
                    Err(VaultError::Useless { path, found })
                } else {
                    Ok(())
                }
            }
        }
    }

    /// The key file.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// The fingerprint of the key that encrypts.
    pub fn fingerprint(&self) -> Fingerprint {
        self.0.keys.load().current.fingerprint
    }

    /// A key for another purpose, which changes with a rotation.
    pub fn derived_key(&self, purpose: &str) -> [u8; 32] {
        self.0.keys.load().current.derived(purpose)
    }

    /// Whether a rotation has rows left to encrypt again.
    pub fn has_earlier_keys(&self) -> bool {
        !self.0.keys.load().earlier.is_empty()
    }

    pub fn rotating(&self) -> &tokio::sync::Mutex<()> {
        &self.0.rotating
    }

    /// Adds a new key, which encrypts from now on.
    pub fn add_key(&self) -> Result<(), Error> {
        let keys = self.0.keys.load().with(SecretKey::generate()?);
        // The key is durable before anything is encrypted with it.
        keys.write(&self.0.path).map_err(file_error)?;
        self.0.keys.store(Arc::new(keys));
        Ok(())
    }

    /// Removes all keys but the current one.
    pub fn drop_earlier_keys(&self) -> Result<(), Error> {
        let keys = Keyring::of(self.0.keys.load().current.clone());
        keys.write(&self.0.path).map_err(file_error)?;
        self.0.keys.store(Arc::new(keys));
        Ok(())
    }

    /// Notes the current key in the database, with an audit record of the operation.
    pub async fn note(&self, db: &Db, operation: Option<&'static str>) -> Result<(), Error> {
        let fingerprint = self.fingerprint();
        let subject = fingerprint.to_string();
        let noted = db.write_essential(move |view| {
            let changes = Changes::none().put(&KEY_FINGERPRINT, (), fingerprint);
            Ok((
                (),
                match operation {
                    Some(operation) => {
                        let operator = Origin::operator();
                        changes.with(audit::record(
                            view, &operator, operation, None, &subject, "begun",
                        ))
                    }
                    None => changes,
                },
            ))
        });
        noted.await
    }

    /// Whether a ciphertext is of the current key.
    fn is_current(&self, encrypted: &Encrypted) -> bool {
        let current = self.fingerprint();
        split(encrypted).is_some_and(|(key, _)| key == current)
    }

    /// Encrypts a ciphertext again if an earlier key encrypted it.
    pub fn renew(&self, id: InstanceId, encrypted: &Encrypted) -> Result<Option<Encrypted>, Error> {
        if encrypted.0.is_empty() || self.is_current(encrypted) {
            return Ok(None);
        }
        self.encrypt(id, &self.decrypt(id, encrypted)?).map(Some)
    }

    fn encrypt(&self, id: InstanceId, plain: &[u8]) -> Result<Encrypted, Error> {
        let mut nonce = [0; NONCE];
        fill(&mut nonce)?;
        let payload = Payload {
            msg: plain,
            aad: id.0.as_bytes(),
        };
        let keys = self.0.keys.load();
        let cipher = keys.current.cipher.encrypt(&XNonce::from(nonce), payload);
        let cipher = cipher.map_err(|_| Error::internal("cannot encrypt"))?;
        let key = keys.current.fingerprint.0;
        Ok(Encrypted([MARK, &key, &nonce, &cipher].concat()))
    }

    fn decrypt(&self, id: InstanceId, encrypted: &Encrypted) -> Result<Vec<u8>, Error> {
        let keys = self.0.keys.load();
        let opened = split(encrypted).and_then(|(fingerprint, rest)| {
            let key = keys.keys().find(|key| key.fingerprint == fingerprint)?;
            open(key, id, rest)
        });
        // A ciphertext of format 3 may begin like one with a fingerprint, however unlikely.
        let opened = opened.or_else(|| keys.keys().find_map(|key| open(key, id, &encrypted.0)));
        opened.ok_or_else(|| {
            Error::internal(format!(
                "a secret of {id} cannot be decrypted: secret.key is probably not the key that \
                 encrypted it"
            ))
        })
    }

    /// Encrypts a secret of an instance. A rotation reaches it only if the write that stores it
    /// calls this.
    pub fn encrypt_text(&self, id: InstanceId, text: &SecretText) -> Result<Encrypted, Error> {
        self.encrypt(id, text.expose().as_bytes())
    }

    /// Decrypts a secret of an instance.
    pub fn decrypt_text(&self, id: InstanceId, encrypted: &Encrypted) -> Result<SecretText, Error> {
        String::from_utf8(self.decrypt(id, encrypted)?)
            .map(SecretText::new)
            .map_err(|e| Error::caused(format!("a secret of {id} is not text"), e.utf8_error()))
    }

    /// The password of an instance, for its owner. It is empty if it cannot be decrypted, so that the
    /// other fields and the other instances are still shown.
    pub fn password(&self, instance: &Instance) -> SecretText {
        let error = match self.decrypt_text(instance.id, &instance.password) {
            Ok(password) => return password,
            Err(error) => error,
        };
        let mut logged = self.0.logged.lock();
        if logged.len() < MAX_LOGGED && logged.insert(instance.id) {
            tracing::error!(instance = %instance.id, %error, "showing the instance without its password");
        }
        SecretText::new("")
    }

    /// Encrypts the secrets that the user gave for an instance. An empty set stays empty.
    pub fn encrypt_all(
        &self,
        id: InstanceId,
        secrets: &InstanceSecrets,
    ) -> Result<Encrypted, Error> {
        if secrets.0.is_empty() {
            return Ok(Encrypted::default());
        }
        let plain =
            postcard::to_stdvec(secrets).map_err(|e| Error::caused("cannot encode secrets", e))?;
        self.encrypt(id, &plain)
    }

    /// Decrypts the given secrets and the password of an instance.
    pub fn decrypt_all(
        &self,
        id: InstanceId,
        given: &Encrypted,
        password: &Encrypted,
    ) -> Result<InstanceSecrets, Error> {
        let mut secrets = if given.0.is_empty() {
            InstanceSecrets::default()
        } else {
            postcard::from_bytes(&self.decrypt(id, given)?)
                .map_err(|e| Error::caused(format!("the secrets of {id} cannot be read"), e))?
        };
        // Earlier versions stored the password in both rows.
        if secrets.get(SecretKind::Password).is_none() {
            let password = self.decrypt_text(id, password)?;
            secrets.0.push((SecretKind::Password, password));
        }
        Ok(secrets)
    }
}

fn file_error(error: KeyFileError) -> Error {
    Error::caused("the key file cannot be replaced", error)
}

/// The fingerprint and the rest of a ciphertext with a fingerprint.
fn split(encrypted: &Encrypted) -> Option<(Fingerprint, &[u8])> {
    let rest = encrypted.0.strip_prefix(MARK)?;
    let (key, rest) = rest.split_first_chunk()?;
    Some((Fingerprint(*key), rest))
}

fn open(key: &SecretKey, id: InstanceId, encrypted: &[u8]) -> Option<Vec<u8>> {
    let (nonce, cipher) = encrypted.split_first_chunk::<NONCE>()?;
    let payload = Payload {
        msg: cipher,
        aad: id.0.as_bytes(),
    };
    key.cipher.decrypt(&XNonce::from(*nonce), payload).ok()
}

#[cfg(test)]
mod tests;

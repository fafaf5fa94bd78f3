//! Encryption of the secrets in the database. The key file is readable by Wharf's account only.

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use wharf_domain::error::Error;
use wharf_domain::ids::InstanceId;
use wharf_domain::secret::{Encrypted, SecretKind, SecretText, Secrets};

/// Length of an XChaCha20 nonce in bytes, which is long enough for random nonces.
const NONCE: usize = 24;

/// Encrypts and decrypts secrets.
#[derive(Clone)]
pub struct Vault(XChaCha20Poly1305);

/// An error of the key file.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// The file cannot be read or created.
    #[error("cannot read or create the key file {path}")]
    File {
        path: PathBuf,
        source: std::io::Error,
    },
    /// Other accounts can read the file.
    #[error("key file {0} must have mode 0600: other accounts on this machine can read it")]
    Mode(PathBuf),
    /// The file does not contain a key.
    #[error("key file {0} must contain exactly 32 bytes")]
    Length(PathBuf),
}

impl Vault {
    /// Reads the key file `secret.key` in a directory, or creates it.
    pub fn open(dir: &Path) -> Result<Self, VaultError> {
        let path = dir.join("secret.key");
        let file = |source| VaultError::File {
            path: path.clone(),
            source,
        };
        if !path.exists() {
            let mut key = [0; 32];
            fill(&mut key).map_err(|e| file(std::io::Error::other(e.to_string())))?;
            // The key must survive a crash: without it no secret can be decrypted.
            wharf_secure_fs::write(&path, &[&key]).map_err(file)?;
        }
        let mode = std::fs::metadata(&path).map_err(file)?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(VaultError::Mode(path));
        }
        let mut key = Vec::new();
        std::fs::File::open(&path)
            .and_then(|mut f| f.read_to_end(&mut key))
            .map_err(file)?;
        let key: [u8; 32] = key
            .try_into()
            .map_err(|_| VaultError::Length(path.clone()))?;
        Ok(Self(XChaCha20Poly1305::new(&Key::from(key))))
    }

    fn encrypt(&self, id: InstanceId, plain: &[u8]) -> Result<Encrypted, Error> {
        let mut nonce = [0; NONCE];
        fill(&mut nonce)?;
        let payload = Payload {
            msg: plain,
            aad: id.0.as_bytes(),
        };
        let cipher = self.0.encrypt(&XNonce::from(nonce), payload);
        let mut encrypted = nonce.to_vec();
        encrypted.extend(cipher.map_err(|_| Error::internal("cannot encrypt"))?);
        Ok(Encrypted(encrypted))
    }

    fn decrypt(&self, id: InstanceId, encrypted: &Encrypted) -> Result<Vec<u8>, Error> {
        let wrong = || {
            Error::internal(format!(
                "a secret of {id} cannot be decrypted: secret.key is probably not the key that \
                 encrypted it"
            ))
        };
        let (nonce, cipher) = encrypted.0.split_first_chunk::<NONCE>().ok_or_else(wrong)?;
        let payload = Payload {
            msg: cipher,
            aad: id.0.as_bytes(),
        };
        self.0
            .decrypt(&XNonce::from(*nonce), payload)
            .map_err(|_| wrong())
    }

    /// Encrypts a secret of an instance.
    pub fn encrypt_text(&self, id: InstanceId, text: &SecretText) -> Result<Encrypted, Error> {
        self.encrypt(id, text.expose().as_bytes())
    }

    /// Decrypts a secret of an instance.
    pub fn decrypt_text(&self, id: InstanceId, encrypted: &Encrypted) -> Result<SecretText, Error> {
        String::from_utf8(self.decrypt(id, encrypted)?)
            .map(SecretText::new)
            .map_err(|e| Error::caused(format!("a secret of {id} is not text"), e.utf8_error()))
    }

    /// Encrypts the secrets that the user gave for an instance. An empty set stays empty.
    pub fn encrypt_all(&self, id: InstanceId, secrets: &Secrets) -> Result<Encrypted, Error> {
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
    ) -> Result<Secrets, Error> {
        let mut secrets = if given.0.is_empty() {
            Secrets::default()
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

/// Fills a buffer with random bytes from the kernel.
pub(super) fn fill(bytes: &mut [u8]) -> Result<(), Error> {
    getrandom::fill(bytes).map_err(|e| Error::caused("no random numbers", e))
}

#[cfg(test)]
mod tests {
    use super::{Key, KeyInit, Vault, XChaCha20Poly1305};
    use wharf_domain::ids::InstanceId;
    use wharf_domain::secret::{Encrypted, SecretKind, SecretText, Secrets};

    #[test]
    fn given_secrets_are_returned_with_the_password_once() {
        let vault = Vault(XChaCha20Poly1305::new(&Key::from([7; 32])));
        let id = InstanceId(uuid::Uuid::from_u128(1));
        let pair = |kind, text: &str| (kind, SecretText::new(text));
        let key = pair(SecretKind::AiProviderApiKey, "a key");
        let password = pair(SecretKind::Password, "a password");
        let in_row = vault.encrypt_text(id, &password.1).unwrap();
        let opened = |given: &[_]| {
            let given = vault.encrypt_all(id, &Secrets(given.to_vec())).unwrap();
            vault.decrypt_all(id, &given, &in_row).unwrap().0
        };
        assert_eq!(opened(&[]), std::slice::from_ref(&password));
        let both = [key.clone(), password];
        assert_eq!(opened(std::slice::from_ref(&key)), both);
        // Earlier versions encrypted the password with the others.
        assert_eq!(opened(&both), both);

        let other = InstanceId(uuid::Uuid::from_u128(2));
        let error = vault.decrypt_all(other, &Encrypted::default(), &in_row);
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("secret.key is probably not the key that encrypted it"),
            "{error}"
        );
    }
}

//! Encrypts secrets for the database, under a key file that only Wharf's account can read.

use crate::domain::error::Error;
use crate::domain::ids::InstanceId;
use crate::domain::secret::{Sealed, SecretKind, SecretText, Secrets};
use crate::private;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Bytes of an XChaCha20 nonce: long enough to be chosen at random for ever.
const NONCE: usize = 24;

/// Seals and opens secrets.
#[derive(Clone)]
pub struct Vault(XChaCha20Poly1305);

/// Why the key file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// It cannot be read or made.
    #[error("key file {path}")]
    File {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Others could read it.
    #[error("key file {0} must have mode 0600: others on this machine can read it")]
    Mode(PathBuf),
    /// It is not a key.
    #[error("key file {0} must hold exactly 32 bytes")]
    Length(PathBuf),
}

impl Vault {
    /// Reads `secret.key` in a directory, or makes it.
    pub fn open(dir: &Path) -> Result<Self, VaultError> {
        let path = dir.join("secret.key");
        let file = |source| VaultError::File {
            path: path.clone(),
            source,
        };
        if !path.exists() {
            let mut key = [0; 32];
            fill(&mut key).map_err(|e| file(std::io::Error::other(e.to_string())))?;
            // One that is lost after a crash takes every secret with it.
            private::write(&path, &[&key]).map_err(file)?;
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

    fn seal(&self, id: InstanceId, plain: &[u8]) -> Result<Sealed, Error> {
        let mut nonce = [0; NONCE];
        fill(&mut nonce)?;
        let payload = Payload {
            msg: plain,
            aad: id.0.as_bytes(),
        };
        let cipher = self.0.encrypt(&XNonce::from(nonce), payload);
        let mut sealed = nonce.to_vec();
        sealed.extend(cipher.map_err(|_| Error::internal("cannot encrypt"))?);
        Ok(Sealed(sealed))
    }

    fn open_bytes(&self, id: InstanceId, sealed: &Sealed) -> Result<Vec<u8>, Error> {
        let wrong = || {
            Error::internal(format!(
                "a secret of {id} cannot be decrypted: is secret.key the one it was made with?"
            ))
        };
        let (nonce, cipher) = sealed.0.split_first_chunk::<NONCE>().ok_or_else(wrong)?;
        let payload = Payload {
            msg: cipher,
            aad: id.0.as_bytes(),
        };
        self.0
            .decrypt(&XNonce::from(*nonce), payload)
            .map_err(|_| wrong())
    }

    /// Encrypts one text of an instance.
    pub fn seal_text(&self, id: InstanceId, text: &SecretText) -> Result<Sealed, Error> {
        self.seal(id, text.expose().as_bytes())
    }

    /// Decrypts it.
    pub fn open_text(&self, id: InstanceId, sealed: &Sealed) -> Result<SecretText, Error> {
        String::from_utf8(self.open_bytes(id, sealed)?)
            .map(SecretText::new)
            .map_err(|e| Error::caused(format!("a secret of {id} is not text"), e.utf8_error()))
    }

    /// Encrypts what its user gave for an instance; where that is nothing, there is nothing to hide.
    pub fn seal_all(&self, id: InstanceId, secrets: &Secrets) -> Result<Sealed, Error> {
        if secrets.0.is_empty() {
            return Ok(Sealed::default());
        }
        let plain =
            postcard::to_stdvec(secrets).map_err(|e| Error::caused("cannot encode secrets", e))?;
        self.seal(id, &plain)
    }

    /// Decrypts it, and the password beside it.
    pub fn open_all(
        &self,
        id: InstanceId,
        given: &Sealed,
        password: &Sealed,
    ) -> Result<Secrets, Error> {
        let mut secrets = if given.0.is_empty() {
            Secrets::default()
        } else {
            postcard::from_bytes(&self.open_bytes(id, given)?)
                .map_err(|e| Error::caused(format!("the secrets of {id} cannot be read"), e))?
        };
        // A Wharf of before wrote it into both rows.
        if secrets.get(SecretKind::Password).is_none() {
            let password = self.open_text(id, password)?;
            secrets.0.push((SecretKind::Password, password));
        }
        Ok(secrets)
    }
}

/// Random bytes from the kernel.
pub(super) fn fill(bytes: &mut [u8]) -> Result<(), Error> {
    getrandom::fill(bytes).map_err(|e| Error::caused("no random numbers", e))
}

#[cfg(test)]
mod tests {
    use super::{Key, KeyInit, Vault, XChaCha20Poly1305};
    use crate::domain::ids::InstanceId;
    use crate::domain::secret::{Sealed, SecretKind, SecretText, Secrets};

    #[test]
    fn what_a_user_gave_comes_back_with_the_password_once() {
        let vault = Vault(XChaCha20Poly1305::new(&Key::from([7; 32])));
        let id = InstanceId(uuid::Uuid::from_u128(1));
        let pair = |kind, text: &str| (kind, SecretText::new(text));
        let key = pair(SecretKind::AiProviderApiKey, "a key");
        let password = pair(SecretKind::Password, "a password");
        let in_row = vault.seal_text(id, &password.1).unwrap();
        let opened = |given: &[_]| {
            let given = vault.seal_all(id, &Secrets(given.to_vec())).unwrap();
            vault.open_all(id, &given, &in_row).unwrap().0
        };
        assert_eq!(opened(&[]), std::slice::from_ref(&password));
        let both = [key.clone(), password];
        assert_eq!(opened(std::slice::from_ref(&key)), both);
        // As they were written before.
        assert_eq!(opened(&both), both);

        let other = InstanceId(uuid::Uuid::from_u128(2));
        let error = vault.open_all(other, &Sealed::default(), &in_row);
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("is secret.key the one it was made with?"),
            "{error}"
        );
    }
}

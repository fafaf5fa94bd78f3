//! The key file: one key of 32 bytes, or several while a rotation is under way. The first one
//! encrypts; all of them decrypt.

use super::random::fill;
use chacha20poly1305::{Key, KeyInit, XChaCha20Poly1305};
use sha2::{Digest, Sha256};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use wharf_domain::error::Error;
use wharf_domain::secret::Fingerprint;

/// The file in the data directory.
pub const FILE: &str = "secret.key";
/// Length of a key in bytes.
const KEY: usize = 32;
/// The most keys in a file. A rotation needs two.
const MAX_KEYS: usize = 8;

/// An error of the key file.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// The file cannot be read or written.
    #[error("cannot read or write the key file {path}")]
    File { path: PathBuf, source: io::Error },
    /// Other accounts can read the file.
    #[error("key file {0} must have mode 0600: other accounts on this machine can read it")]
    Mode(PathBuf),
    /// The file does not contain keys.
    #[error("key file {0} must contain exactly 32 bytes, or 64 while a rotation is under way")]
    Length(PathBuf),
}

/// A key with its cipher. It has no `Debug`.
#[derive(Clone)]
pub struct SecretKey {
    bytes: [u8; KEY],
    pub fingerprint: Fingerprint,
    pub cipher: XChaCha20Poly1305,
}

impl SecretKey {
    fn new(bytes: [u8; KEY]) -> Self {
        let digest = Sha256::new()
            .chain_update(b"wharf secret.key")
            .chain_update(bytes)
            .finalize();
        let mut fingerprint = [0; 8];
        for (to, from) in fingerprint.iter_mut().zip(digest) {
            *to = from;
        }
        Self {
            bytes,
            fingerprint: Fingerprint(fingerprint),
            cipher: XChaCha20Poly1305::new(&Key::from(bytes)),
        }
    }

    /// A key for another purpose. It does not reveal this one.
    pub fn derived(&self, purpose: &str) -> [u8; KEY] {
        let digest = Sha256::new()
            .chain_update(b"wharf derived key ")
            .chain_update(purpose)
            .chain_update(self.bytes)
            .finalize();
        digest.into()
    }

    /// Makes a random key.
    pub fn generate() -> Result<Self, Error> {
        let mut bytes = [0; KEY];
        fill(&mut bytes)?;
        Ok(Self::new(bytes))
    }
}

/// The fingerprints of the keys in the file of a directory; none if it is missing.
pub fn key_in(dir: &Path) -> Result<Vec<Fingerprint>, KeyFileError> {
    let keys = Keyring::read(&dir.join(FILE))?;
    let fingerprints = keys.iter().flat_map(Keyring::keys);
    Ok(fingerprints.map(|key| key.fingerprint).collect())
}

/// The keys of a file.
#[derive(Clone)]
pub struct Keyring {
    /// Encrypts.
    pub current: SecretKey,
    /// Keys of rows that a rotation has not reached yet.
    pub earlier: Vec<SecretKey>,
}

impl Keyring {
    pub fn of(current: SecretKey) -> Self {
        let earlier = Vec::new();
        Self { current, earlier }
    }

    /// All keys, the current one first.
    pub fn keys(&self) -> impl Iterator<Item = &SecretKey> {
        std::iter::once(&self.current).chain(&self.earlier)
    }

    /// The keyring with a new current key.
    pub fn with(&self, current: SecretKey) -> Self {
        let earlier = self.keys().cloned().collect();
        Self { current, earlier }
    }

    /// Reads a file. Returns none if it is missing.
    pub fn read(path: &Path) -> Result<Option<Self>, KeyFileError> {
        let failed = |source| KeyFileError::File {
            path: path.to_owned(),
            source,
        };
        let mut file = match std::fs::File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let mode = file.metadata().map_err(failed)?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(KeyFileError::Mode(path.to_owned()));
        }
        let mut bytes = Vec::new();
        let limit = u64::try_from(KEY * MAX_KEYS + 1).unwrap_or(u64::MAX);
        let read = file.by_ref().take(limit).read_to_end(&mut bytes);
        read.map_err(failed)?;
        let wrong = || KeyFileError::Length(path.to_owned());
        let (keys, rest) = bytes.as_chunks::<KEY>();
        if !rest.is_empty() {
            return Err(wrong());
        }
        let mut keys = keys.iter().map(|key| SecretKey::new(*key));
        let current = keys.next().ok_or_else(wrong)?;
        let earlier = keys.collect();
        Ok(Some(Self { current, earlier }))
    }

    /// Replaces the file atomically and durably: without a key no secret can be decrypted.
    pub fn write(&self, path: &Path) -> Result<(), KeyFileError> {
        let keys: Vec<&[u8]> = self.keys().map(|key| key.bytes.as_slice()).collect();
        wharf_secure_fs::write(path, &keys).map_err(|source| KeyFileError::File {
            path: path.to_owned(),
            source,
        })
    }
}

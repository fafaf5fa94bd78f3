//! The key of backups, and their encryption in the format of `age`.

use super::error::BucketError;
use age::armor::{ArmoredReader, ArmoredWriter, Format};
use age::secrecy::{ExposeSecret as _, SecretString};
use age::stream::{StreamReader, StreamWriter};
use age::{DecryptError, Decryptor, Encryptor, Recipient, scrypt, x25519};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use std::fmt;
use std::io::{self, Read, Write};
use std::iter::once;
use wharf_domain::secret::SecretText;
use zstd::stream::{read, write};

/// The work of scrypt, as a power of two: 128 MiB of memory for about half a second.
const WORK: u8 = 17;
/// The most bytes of a key in text.
const MAX_KEY: u64 = 1024;
/// The level of compression, which keeps up with a disk.
const LEVEL: i32 = 1;
/// The largest window of a content, as a power of two. Level 1 needs 19.
const MAX_WINDOW: u32 = 23;

/// The purpose of the key of manifests, which is derived from the backups' key.
const MANIFESTS: &[u8] = b"wharf backup manifest 1";

/// The key that encrypts and decrypts backups.
#[derive(Clone)]
pub struct BackupKey(x25519::Identity);

impl fmt::Debug for BackupKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(backup key)")
    }
}

impl BackupKey {
    /// A new key.
    pub fn generate() -> Self {
        Self(x25519::Identity::generate())
    }

    /// The key of a text that [`Self::text`] returned.
    pub fn from_text(text: &SecretText) -> Result<Self, BucketError> {
        let parsed = text.expose().parse();
        parsed
            .map(Self)
            .map_err(|_| BucketError::altered("its key is not readable"))
    }

    /// The key as the identity of `age`.
    pub fn text(&self) -> SecretText {
        SecretText::new(self.0.to_string().expose_secret())
    }

    /// Encrypts the key with a passphrase, as a text file of `age`. It takes about half a second of CPU.
    pub fn wrap(&self, passphrase: &SecretText) -> Result<String, BucketError> {
        let mut recipient = scrypt::Recipient::new(secret(passphrase));
        recipient.set_work_factor(WORK);
        let wrapped = || {
            let armour = ArmoredWriter::wrap_output(Vec::new(), Format::AsciiArmor)?;
            let mut writer = encrypted(&recipient, armour)?;
            writer.write_all(self.text().expose().as_bytes())?;
            writer.finish()?.finish()
        };
        let wrapped: io::Result<Vec<u8>> = wrapped();
        wrapped
            .ok()
            .and_then(|bytes| String::from_utf8(bytes).ok())
            .ok_or_else(|| BucketError::Other("the key cannot be encrypted".to_owned()))
    }

    /// Decrypts a key that [`Self::wrap`] encrypted. None is a wrong passphrase. It takes about half a second
    /// of CPU.
    pub fn unwrap(armoured: &str, passphrase: &SecretText) -> Result<Option<Self>, BucketError> {
        let damaged = || BucketError::altered("its encrypted key is not readable");
        let decryptor = Decryptor::new(ArmoredReader::new(armoured.as_bytes()));
        let decryptor = decryptor.map_err(|_| damaged())?;
        let mut identity = scrypt::Identity::new(secret(passphrase));
        identity.set_max_work_factor(WORK);
        let reader = match decryptor.decrypt(once(&identity as _)) {
            Ok(reader) => reader,
            Err(DecryptError::DecryptionFailed | DecryptError::KeyDecryptionFailed) => {
                return Ok(None);
            }
            Err(_) => return Err(damaged()),
        };
        let mut text = String::new();
        let read = reader.take(MAX_KEY).read_to_string(&mut text);
        read.map_err(|_| damaged())?;
        Self::from_text(&SecretText::new(text)).map(Some)
    }

    /// The code of a manifest, which only holders of the key can make.
    pub(crate) fn code(&self, manifest: &[u8]) -> Result<Hmac<Sha256>, BucketError> {
        let code = |key: &[u8], text: &[u8]| {
            let code = Hmac::<Sha256>::new_from_slice(key);
            code.map(|code| code.chain_update(text))
        };
        let derived = code(self.text().expose().as_bytes(), MANIFESTS);
        derived
            .and_then(|derived| code(&derived.finalize().into_bytes(), manifest))
            .map_err(|_| BucketError::Other("the manifest cannot be signed".to_owned()))
    }

    /// Compresses and encrypts what is written.
    pub(crate) fn sealed<W: Write>(
        &self,
        output: W,
    ) -> io::Result<write::Encoder<'static, StreamWriter<W>>> {
        write::Encoder::new(encrypted(&self.0.to_public(), output)?, LEVEL)
    }

    /// Decrypts and unpacks what is read.
    pub(crate) fn opened<R: Read>(
        &self,
        input: R,
    ) -> io::Result<read::Decoder<'static, io::BufReader<StreamReader<R>>>> {
        let decryptor = Decryptor::new(input).map_err(plain)?;
        let decrypted = decryptor.decrypt(once(&self.0 as _)).map_err(plain)?;
        let mut decoder = read::Decoder::new(decrypted)?;
        decoder.window_log_max(MAX_WINDOW)?;
        Ok(decoder)
    }
}

/// Encrypts what is written.
fn encrypted<W: Write>(recipient: &dyn Recipient, output: W) -> io::Result<StreamWriter<W>> {
    let encryptor = Encryptor::with_recipients(once(recipient)).map_err(io::Error::other)?;
    encryptor.wrap_output(output)
}

/// The error of the input itself, if there was one.
fn plain(error: DecryptError) -> io::Error {
    match error {
        DecryptError::Io(error) => error,
        other => io::Error::other(other),
    }
}

fn secret(text: &SecretText) -> SecretString {
    SecretString::from(text.expose().to_owned())
}

//! The users' secrets. Neither `Debug` nor `Display` shows their values.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The kind of a secret. Those of users are named after their fields of the REST interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SecretKind {
    Password,
    S3EndpointUrl,
    S3AccessKeyId,
    S3SecretAccessKey,
    S3PrefillBucket,
    AiProviderApiKey,
    /// The token of an instance's page, which no field has.
    WebToken,
}

/// A string that must not be printed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SecretText(String);

impl SecretText {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the plain text. A search for this call finds every use of a secret.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

/// The secrets of one instance.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceSecrets(pub Vec<(SecretKind, SecretText)>);

impl InstanceSecrets {
    /// Returns the secret of a kind.
    pub fn get(&self, kind: SecretKind) -> Option<&SecretText> {
        self.0.iter().find(|(k, _)| *k == kind).map(|(_, v)| v)
    }
}

/// A secret encrypted for the database.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Encrypted(pub Vec<u8>);

impl fmt::Debug for Encrypted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(encrypted)")
    }
}

/// Names a key without revealing it: the first bytes of a digest of the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Fingerprint(pub [u8; 8]);

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

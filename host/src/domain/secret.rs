//! A user's secrets. The value has no `Debug` and no `Display` that shows it.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Which secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SecretKind {
    /// `original_service_password`.
    Password,
    /// `s3_endpoint_url`.
    S3EndpointUrl,
    /// `s3_access_key_id`.
    S3AccessKeyId,
    /// `s3_secret_access_key`.
    S3SecretAccessKey,
    /// `s3_prefill_bucket`.
    S3PrefillBucket,
    /// `ai_provider_api_key`.
    AiProviderApiKey,
}

/// A text that must not be printed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SecretText(String);

impl SecretText {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself. Each caller is a place to look at when asking where secrets go.
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
pub struct Secrets(pub Vec<(SecretKind, SecretText)>);

impl Secrets {
    /// One of them.
    pub fn get(&self, kind: SecretKind) -> Option<&SecretText> {
        self.0.iter().find(|(k, _)| *k == kind).map(|(_, v)| v)
    }
}

/// A secret encrypted for the database.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Sealed(pub Vec<u8>);

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(sealed)")
    }
}

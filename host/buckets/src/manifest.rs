//! The manifest of a backup. It is written last, so a backup without one is not complete.

use super::error::BucketError;
use super::seal::BackupKey;
use hmac::Mac as _;
use serde::{Deserialize, Serialize};
use wharf_domain::capacity::{CpuTier, Size};
use wharf_domain::instance::ResourceType;
use wharf_domain::time::Timestamp;

/// The version of manifests and contents.
pub const FORMAT: u32 = 1;

/// The origin of a backup, and the size and hash of its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub format: u32,
    /// The id of the backup, which is in the names of its objects.
    pub id: String,
    /// Empty for a volume.
    pub instance_id: String,
    /// The id of the volume, if the backup is of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_id: Option<String>,
    /// The name of the instance or the volume.
    pub name: String,
    pub flavor: String,
    pub resource_type: ResourceType,
    pub engine_kind: String,
    pub size: Size,
    pub cpu_tier: CpuTier,
    pub taken_at: Timestamp,
    pub tar_bytes: u64,
    pub stored_bytes: u64,
    /// The hash of the archive in hexadecimal digits.
    pub sha256: String,
    /// The top-level entries of the image that the content no longer has.
    pub gone: Vec<String>,
    /// The key of the backup, encrypted with the user's passphrase.
    pub key: String,
    /// The code of all other fields. [`super::BucketClient::put_manifest`] sets it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub mac: String,
}

/// The field by which a later version is known.
#[derive(Deserialize)]
struct Versioned {
    format: u32,
}

impl Manifest {
    /// Parses a manifest. Nothing proves it yet.
    pub fn parse(json: &[u8]) -> Result<Self, BucketError> {
        let damaged = |_| BucketError::altered("its manifest is not readable");
        let versioned: Versioned = serde_json::from_slice(json).map_err(damaged)?;
        if versioned.format != FORMAT {
            let message = "the backup has a format that this version of Wharf does not know";
            return Err(BucketError::Other(message.to_owned()));
        }
        serde_json::from_slice(json).map_err(damaged)
    }

    /// Checks that the backup of this id was made with this key, and that nothing was changed since.
    pub fn check(&self, id: &str, key: &BackupKey) -> Result<(), BucketError> {
        let mac = digits(&self.mac).unwrap_or_default();
        let code = key.code(&self.unsigned()?)?;
        if code.verify_slice(&mac).is_err() {
            return Err(BucketError::altered(
                "its manifest is not made with its key",
            ));
        }
        if self.id != id {
            return Err(BucketError::altered("its manifest is of another backup"));
        }
        Ok(())
    }

    /// The JSON with its code.
    pub fn signed(&self, key: &BackupKey) -> Result<Vec<u8>, BucketError> {
        let code = key.code(&self.unsigned()?)?.finalize();
        let mac = hex(&code.into_bytes());
        json(&Self {
            mac,
            ..self.clone()
        })
    }

    /// The JSON without its code.
    fn unsigned(&self) -> Result<Vec<u8>, BucketError> {
        json(&Self {
            mac: String::new(),
            ..self.clone()
        })
    }
}

fn json(manifest: &Manifest) -> Result<Vec<u8>, BucketError> {
    let json = serde_json::to_vec(manifest);
    json.map_err(|_| BucketError::Other("the manifest cannot be written".to_owned()))
}

/// Bytes in hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn digits(hex: &str) -> Option<Vec<u8>> {
    let pairs = hex.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}

//! The engine-neutral description of an instance of a flavor. It mirrors `types.blueprint` of the
//! WIT package, and the database stores it in this form.

use super::secret::SecretKind;
use serde::{Deserialize, Serialize};

/// The port of the SSH server inside an instance.
pub const SSH_PORT: u16 = 22;

/// The content of a file inside an instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileContent {
    /// Literal bytes.
    Bytes(Vec<u8>),
    /// The value of a secret.
    Secret(SecretKind),
    /// The SHA-512 crypt(3) hash of a secret.
    SecretCrypt(SecretKind),
}

/// A file that is created before the first start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlueprintFile {
    /// Absolute, normalized path.
    pub path: String,
    pub mode: u32,
    /// Owner inside the instance.
    pub uid: u32,
    /// Group inside the instance.
    pub gid: u32,
    pub content: FileContent,
}

/// The check for whether an instance is reachable for its user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Health {
    /// An SSH banner on the published SSH port.
    Ssh,
    /// An HTTP response of the web page at this path.
    Http(String),
}

/// The image for one kind of engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Engine kind of the driver.
    pub engine_kind: String,
    /// Image name in the engine's syntax.
    pub reference: String,
}

/// The engine-neutral description of an instance of a flavor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blueprint {
    /// One image for each kind of engine.
    pub images: Vec<Image>,
    /// Files to create before the first start.
    pub files: Vec<BlueprintFile>,
    /// Environment variables of the first process.
    pub environment: Vec<(String, String)>,
    /// Replacement for the image's command, unless empty.
    pub command: Vec<String>,
    /// Readiness check.
    pub health: Health,
    /// Whether SSH listens on port 22 inside.
    pub ssh: bool,
    /// Port of the web page inside.
    pub web_port: Option<u16>,
}

impl Blueprint {
    /// Returns whether a file has a secret as it is.
    pub fn has_secret(&self, kind: SecretKind) -> bool {
        let content = FileContent::Secret(kind);
        self.files.iter().any(|file| file.content == content)
    }
}

//! What an instance of a flavor is made of, engine-neutral. Mirrors `types.blueprint` of the WIT
//! package, and is what the database keeps of it.

use super::secret::SecretKind;
use serde::{Deserialize, Serialize};

/// What a file inside an instance holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Content {
    /// These bytes.
    Bytes(Vec<u8>),
    /// The secret's value.
    Secret(SecretKind),
    /// The secret's SHA-512 crypt(3) hash.
    SecretCrypt(SecretKind),
}

/// One file put in place before the first start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    /// Absolute and in normal form.
    pub path: String,
    /// Permission bits.
    pub mode: u32,
    /// Owner inside.
    pub uid: u32,
    /// Group inside.
    pub gid: u32,
    /// What it holds.
    pub content: Content,
}

/// When an instance is reachable for its user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Health {
    /// An SSH banner on the published SSH port.
    Ssh,
    /// The web page answers this path.
    Http(String),
}

/// The image for one kind of engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// The driver's engine kind.
    pub engine_kind: String,
    /// How that engine names the image.
    pub reference: String,
}

/// What an instance of a flavor is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blueprint {
    /// One image per kind of engine.
    pub images: Vec<Image>,
    /// Files for before the first start.
    pub files: Vec<File>,
    /// Environment of the first process.
    pub environment: Vec<(String, String)>,
    /// Replaces the image's command unless empty.
    pub command: Vec<String>,
    /// How readiness is seen.
    pub health: Health,
    /// SSH listens on port 22 inside.
    pub ssh: bool,
    /// Where the web page listens inside.
    pub web_port: Option<u16>,
}

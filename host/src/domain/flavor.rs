//! Software environments on offer.

use super::capacity::Size;
use super::instance::ResourceType;

/// One flavor, as its provider describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "mirrors the WIT record")]
pub struct Flavor {
    /// As users name it.
    pub name: String,
    /// One sentence.
    pub description: String,
    /// What it can run as.
    pub resource_types: Vec<ResourceType>,
    /// SSH-accessible.
    pub ssh: bool,
    /// Has a web page.
    pub web: bool,
    /// Takes the `s3_*` fields.
    pub s3_prefill: bool,
    /// Hands the AI key on.
    pub ai: bool,
    /// Uses a GPU.
    pub gpu_aware: bool,
    /// Works from here on.
    pub minimum: Size,
}

/// What a provider is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BlueprintRequest {
    /// Which flavor.
    pub flavor: String,
    /// VM or container.
    pub resource_type: ResourceType,
    /// Its size.
    pub size: Size,
    /// GPUs attached.
    pub n_gpus: u32,
    /// Account inside.
    pub login_user: String,
    /// OpenSSH public key line.
    pub public_key: Option<String>,
    /// The S3 secrets are there.
    pub s3_prefill: bool,
    /// The AI key is there.
    pub ai: bool,
}

//! Flavors: the software environments on offer.

use super::capacity::Size;
use super::instance::ResourceType;
use serde::Deserialize;
use std::sync::Arc;

/// The credential that is added to requests for a page, in the header `Authorization`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WebAuth {
    /// The page asks its visitors itself.
    #[default]
    None,
    /// `Bearer` and the instance's web token if a file of its blueprint has it, or else the password.
    Bearer,
    /// `Basic` with the login account, and the secret of `Bearer`.
    Basic,
    /// `token` and the instance's web token.
    Token,
}

/// A flavor, as its provider describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "mirrors the WIT record")]
pub struct Flavor {
    /// Name in requests.
    pub name: String,
    /// One sentence.
    pub description: String,
    /// Kinds of instance that can have it.
    pub resource_types: Vec<ResourceType>,
    /// Whether its containers have SSH.
    pub ssh: bool,
    /// Whether it has a web page.
    pub web: bool,
    /// The credential of the page.
    pub web_auth: WebAuth,
    /// Whether it takes the `s3_*` fields.
    pub s3_prefill: bool,
    /// Whether it uses `ai_provider_api_key`.
    pub ai: bool,
    /// Whether it uses a GPU.
    pub gpu_aware: bool,
    /// The smallest size it works with.
    pub minimum: Size,
}

/// A request for the blueprint of one instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlueprintRequest {
    /// The instance's flavor.
    pub flavor: Arc<Flavor>,
    /// VM or container.
    pub resource_type: ResourceType,
    /// Size.
    pub size: Size,
    /// Number of GPUs.
    pub n_gpus: u32,
    /// Account inside the instance.
    pub login_user: String,
    /// OpenSSH public key line.
    pub public_key: Option<String>,
    /// Whether the request has the S3 secrets.
    pub s3_prefill: bool,
    /// Whether the request has the AI key.
    pub ai: bool,
    /// Whether the page gets a private port, so that its visitors come through the host.
    pub private_page: bool,
}

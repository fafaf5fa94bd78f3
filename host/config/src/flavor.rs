//! `[[flavor]]`: a flavor from an image of the operator's.

use super::{Config, ConfigError};
use crate::check::wrong;
use serde::Deserialize;
use std::collections::BTreeSet;
use wharf_domain::flavor::WebAuth;

/// Longest name, as of flavors from plugins.
const MAX_NAME: usize = 63;
/// Longest reference of an image, as engines accept it.
const MAX_IMAGE: usize = 255;
/// Most words of a command.
const MAX_COMMAND: usize = 64;

/// A flavor from an image that starts as docs/flavors.md describes. It runs in containers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlavorConfig {
    /// Name in requests, required. No plugin offers a flavor with this name.
    pub name: String,
    /// One sentence for display. Default: the image.
    pub description: Option<String>,
    /// Image in the engine's syntax, required. A node's `image_prefix` replaces `localhost/wharf/`.
    pub image: String,
    /// Whether SSH listens on port 22 inside. Default false. Either `ssh` or `web_port` is required; with
    /// both, the port of SSH is private.
    #[serde(default)]
    pub ssh: bool,
    /// Port of the web page inside. Default: none.
    pub web_port: Option<u16>,
    /// Path of the page that answers without a password once it works. Default `/`.
    #[serde(default = "root")]
    pub web_path: String,
    /// Password of the instance that Wharf adds to requests for the page below `pages.domain`: `"bearer"`,
    /// `"basic"` with the login account, or `"none"`. Default `"none"`: the page asks for it itself.
    #[serde(default)]
    pub web_auth: WebAuth,
    /// Command that replaces the image's own. Default: none.
    #[serde(default)]
    pub command: Vec<String>,
    /// The smallest instance. Default: 1 vCPU, 1 GiB of RAM, 10 GiB of disk.
    #[serde(default)]
    pub minimum: Minimum,
}

/// The smallest size of an instance with a flavor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Minimum {
    /// Number of vCPUs. Default 1.
    pub n_vcpus: u32,
    /// RAM in GiB. Default 1.
    pub mem_gib: u32,
    /// Disk in GiB. Default 10.
    pub disk_size_gib: u32,
}

impl Default for Minimum {
    fn default() -> Self {
        Self {
            n_vcpus: 1,
            mem_gib: 1,
            disk_size_gib: 10,
        }
    }
}

fn root() -> String {
    "/".to_owned()
}

/// Checks the flavors against each other. Their names are compared with those of plugins later.
pub(super) fn check(config: &Config) -> Result<(), ConfigError> {
    let mut names = BTreeSet::new();
    for flavor in &config.flavor {
        let name = &flavor.name;
        if !is_name(name) {
            return wrong(
                "flavor.name",
                "must be 1 to 63 lowercase letters, digits and single hyphens, beginning with a letter",
            );
        }
        if !names.insert(name) {
            return wrong("flavor.name", &format!("`{name}` is used twice"));
        }
        check_one(flavor)?;
    }
    Ok(())
}

fn check_one(flavor: &FlavorConfig) -> Result<(), ConfigError> {
    let setting = |key: &str| format!("flavor.{}.{key}", flavor.name);
    if !is_image(&flavor.image) {
        return wrong(
            &setting("image"),
            "must be the name of an image, such as \"localhost/team/tools:1\"",
        );
    }
    match (flavor.ssh, flavor.web_port) {
        (false, None) => {
            return wrong(
                &setting("ssh"),
                "must be true if `web_port` is not set: users reach an instance by SSH or by its page",
            );
        }
        (_, Some(0)) => return wrong(&setting("web_port"), "must be from 1 to 65535"),
        (true, Some(22)) => {
            return wrong(&setting("web_port"), "must differ from 22, the port of SSH");
        }
        _ if flavor.web_auth == WebAuth::Token => {
            return wrong(
                &setting("web_auth"),
                "must be \"none\", \"bearer\" or \"basic\"",
            );
        }
        (_, None) if flavor.web_auth != WebAuth::None => {
            return wrong(
                &setting("web_auth"),
                "must be left out if `web_port` is not set",
            );
        }
        _ => {}
    }
    let is_path = flavor.web_path.starts_with('/')
        && flavor.web_path.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_path {
        return wrong(&setting("web_path"), "must be a path, such as \"/health\"");
    }
    let is_word = |word: &String| !word.is_empty() && !word.contains('\0');
    if flavor.command.len() > MAX_COMMAND || !flavor.command.iter().all(is_word) {
        return wrong(
            &setting("command"),
            "must be a list of at most 64 words, none of them empty",
        );
    }
    let Minimum {
        n_vcpus,
        mem_gib,
        disk_size_gib,
    } = flavor.minimum;
    for (key, value, least) in [
        ("n_vcpus", n_vcpus, 1),
        ("mem_gib", mem_gib, 1),
        ("disk_size_gib", disk_size_gib, 10),
    ] {
        if value < least {
            return wrong(
                &setting(&format!("minimum.{key}")),
                &format!("must be at least {least}"),
            );
        }
    }
    Ok(())
}

fn is_name(name: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    name.len() <= MAX_NAME
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.split('-').all(is_part)
}

fn is_image(image: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:@".contains(&byte);
    image.len() <= MAX_IMAGE
        && image.starts_with(|c: char| c.is_ascii_alphanumeric())
        && image.bytes().all(allowed)
        && !image.contains("..")
        && !image.contains("//")
}

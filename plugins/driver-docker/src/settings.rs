//! The node's `settings` table for this driver.

use serde::Deserialize;
use serde::de::IgnoredAny;

/// The prefix of images that are built on the node itself.
const LOCAL_PREFIX: &str = "localhost/wharf/";

/// Whether the engine should enforce `disk_size_gib`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DiskLimit {
    /// Enforced if the engine can; instances have no limit otherwise.
    Auto,
    /// Always enforced. An engine without support refuses every instance.
    On,
    /// Never.
    Off,
}

impl DiskLimit {
    /// Returns whether every disk has a limit for certain.
    pub fn is_certain(self, found: Option<bool>) -> bool {
        match self {
            Self::On => true,
            Self::Off => false,
            Self::Auto => found == Some(true),
        }
    }
}

/// The quota groups of the engine's btrfs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BtrfsQuotas {
    /// A limit counts the blocks that a container shares with its image.
    Full,
    /// A limit counts the blocks that the container has written.
    Simple,
}

/// Whether virtual machines get the node's `/dev/kvm`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kvm {
    /// If the node has it. Each machine tests it and falls back to emulation.
    Auto,
    /// Never.
    Off,
}

/// Whether containers see their own CPUs and memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lxcfs {
    /// If the node has lxcfs.
    Auto,
    /// Never.
    Off,
}

/// The settings, with their defaults. `requests.toml` describes and checks them.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The replacement of `localhost/wharf/` in image references, such as the prefix of a registry.
    pub image_prefix: String,
    /// User namespace mode of the containers, on engines that have it (Podman: `auto`).
    pub userns: Option<String>,
    /// Whether `disk_size_gib` is enforced.
    pub disk_limit: DiskLimit,
    /// The quota groups of the engine's storage, if that is btrfs.
    pub btrfs_quotas: BtrfsQuotas,
    /// Whether virtual machines use hardware virtualisation.
    pub kvm: Kvm,
    /// Whether containers see their own CPUs and memory, with the node's lxcfs.
    pub lxcfs: Lxcfs,
    /// An existing network of the engine with the node's public addresses, such as a macvlan. If
    /// none, a bridge is created.
    pub public_network: Option<String>,
    // The host alone uses these.
    publish_address: IgnoredAny,
    pids_limit: IgnoredAny,
    dns: IgnoredAny,
    ulimits: IgnoredAny,
    api_version: IgnoredAny,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            image_prefix: LOCAL_PREFIX.into(),
            userns: None,
            disk_limit: DiskLimit::Auto,
            btrfs_quotas: BtrfsQuotas::Full,
            kvm: Kvm::Auto,
            lxcfs: Lxcfs::Auto,
            public_network: None,
            publish_address: IgnoredAny,
            pids_limit: IgnoredAny,
            dns: IgnoredAny,
            ulimits: IgnoredAny,
            api_version: IgnoredAny,
        }
    }
}

impl Settings {
    /// Translates a blueprint's image reference for this node.
    pub fn image(&self, reference: &str) -> String {
        match reference.strip_prefix(LOCAL_PREFIX) {
            Some(rest) => format!("{}{rest}", self.image_prefix),
            None => reference.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{DiskLimit, Settings};

    fn read(settings: &str) -> Result<Settings, serde_json::Error> {
        serde_json::from_str(settings)
    }

    #[test]
    fn given_settings_apply() {
        assert_eq!(read("{}").unwrap(), Settings::default());
        let settings = read(
            r#"{"publish_address":"127.0.0.1","image_prefix":"r.example/w/","disk_limit":"on",
                "dns":["10.0.0.53"],"ulimits":{"nofile":1024},"api_version":"1.44"}"#,
        )
        .unwrap();
        assert_eq!(settings.disk_limit, DiskLimit::On);
        assert_eq!(
            settings.image("localhost/wharf/base:1"),
            "r.example/w/base:1"
        );
        assert_eq!(settings.image("other/x:2"), "other/x:2");
    }

    #[test]
    fn a_misspelt_setting_is_named() {
        let error = read(r#"{"pid_limit":1}"#).unwrap_err().to_string();
        assert!(error.contains("pid_limit"), "{error}");
    }
}

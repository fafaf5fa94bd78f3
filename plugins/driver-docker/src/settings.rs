//! The node's `settings` table for this driver.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::IpAddr;
use wharf_guest::{Error, Node};

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
    #[must_use]
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

/// The settings, with their defaults.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The node's address for published ports.
    pub publish_address: IpAddr,
    /// The replacement of `localhost/wharf/` in image references, such as the prefix of a registry.
    pub image_prefix: String,
    /// Maximum number of processes and threads in an instance.
    pub pids_limit: u32,
    /// User namespace mode of the containers, on engines that have it (Podman: `auto`).
    pub userns: Option<String>,
    /// Name servers of the containers; empty for the engine's choice.
    pub dns: Vec<IpAddr>,
    /// Resource limits by name, as both soft and hard limit. The engine chooses the others.
    pub ulimits: BTreeMap<String, u64>,
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
    /// Version of the engine's interface, such as `1.44`; if none, the engine's newest.
    pub api_version: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            publish_address: IpAddr::from([0, 0, 0, 0]),
            image_prefix: LOCAL_PREFIX.into(),
            pids_limit: 4096,
            userns: None,
            dns: Vec::new(),
            ulimits: BTreeMap::new(),
            disk_limit: DiskLimit::Auto,
            btrfs_quotas: BtrfsQuotas::Full,
            kvm: Kvm::Auto,
            lxcfs: Lxcfs::Auto,
            public_network: None,
            api_version: None,
        }
    }
}

impl Settings {
    /// Parses and checks the table.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the name of the setting.
    pub fn read(node: &Node) -> Result<Self, Error> {
        let settings: Self = wharf_guest::settings(node)?;
        if settings.pids_limit == 0 {
            return Err(Error::invalid("settings.pids_limit", "must be at least 1"));
        }
        if settings
            .api_version
            .as_deref()
            .is_some_and(|version| !is_version(version))
        {
            let message = "must be two numbers with a dot, such as \"1.44\"";
            return Err(Error::invalid("settings.api_version", message));
        }
        Ok(settings)
    }

    /// Translates a blueprint's image reference for this node.
    #[must_use]
    pub fn image(&self, reference: &str) -> String {
        match reference.strip_prefix(LOCAL_PREFIX) {
            Some(rest) => format!("{}{rest}", self.image_prefix),
            None => reference.to_owned(),
        }
    }
}

fn is_version(text: &str) -> bool {
    text.split_once('.').is_some_and(|(major, minor)| {
        [major, minor]
            .iter()
            .all(|part| part.parse::<u16>().is_ok())
    })
}

#[cfg(test)]
mod tests {
    use super::{DiskLimit, Settings};
    use wharf_guest::{Error, Node};

    fn read(settings: &str) -> Result<Settings, Error> {
        Settings::read(&Node {
            name: "n".into(),
            installation: "i".into(),
            settings: settings.into(),
            hint: String::new(),
        })
    }

    #[test]
    fn an_empty_table_gives_the_defaults() {
        assert_eq!(read("{}").unwrap(), Settings::default());
        assert_eq!(read("").unwrap().pids_limit, 4096);
    }

    #[test]
    fn given_settings_apply() {
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
    fn a_wrong_setting_is_named() {
        let cases = [
            (r#"{"pid_limit":1}"#, "pid_limit"),
            (r#"{"pids_limit":0}"#, "pids_limit"),
            (r#"{"publish_address":"nowhere"}"#, "IP address"),
            (r#"{"api_version":"1.41/x"}"#, "api_version"),
        ];
        for (text, named) in cases {
            let error = read(text).unwrap_err();
            assert!(format!("{error:?}").contains(named), "{error:?}");
        }
    }
}

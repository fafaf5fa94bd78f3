//! `[[registry]]`: an account at a registry of images.

use super::{Config, ConfigError};
use crate::check::wrong;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::PathBuf;
use wharf_domain::image::Registry;

/// Longest name of an account.
const MAX_USER: usize = 255;

/// An account with which engines pull images. Instances and plugins never see it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegistryConfig {
    /// Host in names of images, with its port if they have one. Default: the registry that engines take for names
    /// without a host.
    pub host: Option<String>,
    /// Name of the account, required.
    pub user: String,
    /// Path of the file with its password, required. No other account of the machine may read it.
    pub password_file: PathBuf,
}

impl RegistryConfig {
    /// The registry.
    pub fn registry(&self) -> Registry {
        Registry::new(self.host.as_deref())
    }

    /// The beginning of the names of its settings.
    pub fn setting(&self) -> String {
        match &self.host {
            Some(host) => format!("registry.{host}"),
            None => "registry".to_owned(),
        }
    }
}

/// Checks the accounts against each other.
pub(super) fn check(config: &Config) -> Result<(), ConfigError> {
    let mut registries = BTreeSet::new();
    for account in &config.registry {
        if let Some(host) = &account.host
            && !is_host(host)
        {
            return wrong(
                "registry.host",
                &format!(
                    "{host:?} must be the first part of the names of its images, such as \
                     \"registry.example\" or \"registry.example:5000\", without a scheme and a path"
                ),
            );
        }
        if !registries.insert(account.registry()) {
            let which = match &account.host {
                Some(host) => format!("{host:?} is used twice"),
                None => "only one [[registry]] may have none".to_owned(),
            };
            return wrong("registry.host", &which);
        }
        let user = &account.user;
        // In the header that registries get, a colon ends the name.
        let is_plain = |c: char| !c.is_control() && c != ':';
        if user.is_empty() || user.len() > MAX_USER || !user.chars().all(is_plain) {
            return wrong(
                &format!("{}.user", account.setting()),
                "must be the name of an account: 1 to 255 bytes, without colons and control characters",
            );
        }
    }
    Ok(())
}

/// Whether names of images with this first part are of a registry with this host.
fn is_host(host: &str) -> bool {
    let (name, port) = host.split_once(':').unwrap_or((host, "443"));
    let is_part = |part: &str| {
        !part.is_empty()
            && !part.starts_with('-')
            && !part.ends_with('-')
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let of = Registry::of(&format!("{host}/image"));
    host.len() <= 255
        && name.split('.').all(is_part)
        && port.parse().is_ok_and(|port: u16| port > 0)
        && of == Registry::new(Some(host))
}

#[cfg(test)]
mod tests {
    use super::is_host;

    #[test]
    fn hosts_are_first_parts_of_names_of_images() {
        for right in [
            "registry.example",
            "Registry.Example",
            "registry.example:5000",
            "registry:5000",
            "127.0.0.1:5000",
            "localhost",
        ] {
            assert!(is_host(right), "{right}");
        }
        for wrong in [
            "",
            "registry",
            "https://registry.example",
            "registry.example/",
            "registry.example/team",
            "registry.example:",
            "registry.example:0",
            "registry.example:x",
            "registry.example:5000:1",
            "registry..example",
            "-.example",
            "wharf@registry.example",
            " registry.example",
            ".",
            ":5000",
        ] {
            assert!(!is_host(wrong), "{wrong}");
        }
    }
}

//! The node's settings that bind a driver.

use super::refuse;
use crate::policy::Refusal;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The part of a node's `settings` that the policy reads. A driver may know more keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Address of the node on which ports are published.
    pub publish_address: IpAddr,
    /// The replacement for `localhost/wharf/` in image references.
    pub image_prefix: String,
    /// Most processes in a container.
    pub pids_limit: u64,
    /// User namespace mode (Podman).
    pub userns: Option<String>,
    /// Name servers of the containers.
    pub dns: Vec<IpAddr>,
    /// Resource limits, by name.
    pub ulimits: BTreeMap<String, u64>,
    /// `auto` or `off`; the driver checks it.
    pub kvm: String,
    /// `auto` or `off`; the driver checks it.
    pub lxcfs: String,
    /// `auto`, `on` or `off`; the driver checks it.
    pub disk_limit: String,
    /// The operator's network for public addresses.
    pub public_network: Option<String>,
}

/// Prefix of images that are built on the node, in blueprints.
const LOCAL_PREFIX: &str = "localhost/wharf/";

impl Default for Settings {
    fn default() -> Self {
        Self {
            publish_address: IpAddr::from([0, 0, 0, 0]),
            image_prefix: LOCAL_PREFIX.to_owned(),
            pids_limit: 4096,
            userns: None,
            dns: Vec::new(),
            ulimits: BTreeMap::new(),
            kvm: "auto".to_owned(),
            lxcfs: "auto".to_owned(),
            disk_limit: "auto".to_owned(),
            public_network: None,
        }
    }
}

impl Settings {
    /// Parses the settings; an error names its key.
    pub fn read(value: &Value) -> Result<Self, String> {
        let value = if value.is_null() {
            &Value::Object(serde_json::Map::new())
        } else {
            value
        };
        let settings: Self = serde_path(value)?;
        if settings
            .userns
            .as_deref()
            .is_some_and(|mode| mode == "host" || mode.starts_with("container:"))
        {
            return Err("userns: must not be the node's own or another container's".into());
        }
        if settings.pids_limit == 0 {
            return Err("pids_limit: must be at least 1".into());
        }
        Ok(settings)
    }

    /// Whether there is a setting with this name.
    pub fn has(&self, name: &str) -> bool {
        serde_json::to_value(self).is_ok_and(|settings| settings.get(name).is_some())
    }

    /// The names of a blueprint's images after the replacement.
    pub fn images(&self, images: &[String]) -> Vec<String> {
        let renamed = |image: &String| match image.strip_prefix(LOCAL_PREFIX) {
            Some(rest) => format!("{}{rest}", self.image_prefix),
            None => image.clone(),
        };
        images.iter().map(renamed).collect()
    }

    /// Requires one of a blueprint's images, by its name after the replacement.
    pub fn image(&self, reference: &str, images: &[String]) -> Result<(), Refusal> {
        match self.images(images).iter().any(|image| image == reference) {
            true => Ok(()),
            false => Err(refuse(format!(
                "image {reference:?} is not the blueprint's"
            ))),
        }
    }
}

/// Deserializes one key, so that the error can name it.
fn serde_path(value: &Value) -> Result<Settings, String> {
    let object = value.as_object().ok_or("must be a table")?;
    for (key, member) in object {
        let alone = Value::Object([(key.clone(), member.clone())].into_iter().collect());
        Settings::deserialize(&alone).map_err(|error| format!("{key}: {error}"))?;
    }
    Settings::deserialize(value).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn settings_name_the_wrong_key() {
        assert!(Settings::read(&json!({ "log": "x" })).is_ok());
        let error = Settings::read(&json!({ "publish_address": "somewhere" })).unwrap_err();
        assert!(error.starts_with("publish_address: "), "{error}");
        assert!(Settings::read(&json!({ "userns": "host" })).is_err());
        assert!(Settings::read(&json!([])).is_err());
    }

    #[test]
    fn settings_without_a_value_have_a_name_too() {
        let settings = Settings::default();
        assert!(settings.has("lxcfs") && settings.has("userns"));
        assert!(!settings.has("log"));
    }
}

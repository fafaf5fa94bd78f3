//! The file of profiles: servers, and the keys for them.

use crate::failure::Failure;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::env;
use std::path::PathBuf;
use wharf_client::Secret;

/// Profiles by name.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profiles {
    /// The profile of commands that name none.
    pub current: Option<String>,
    #[serde(default)]
    pub profile: BTreeMap<String, Profile>,
}

/// A server, and the key of a user for it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    pub url: String,
    pub key: Secret,
}

/// The directory of the user's files of Wharf.
pub fn directory() -> Result<PathBuf> {
    let named = env::var_os("XDG_CONFIG_HOME").filter(|path| !path.is_empty());
    let directory = match named {
        Some(path) => PathBuf::from(path),
        None => home()?.join(".config"),
    };
    Ok(directory.join("wharf"))
}

/// The user's home directory.
pub fn home() -> Result<PathBuf> {
    let home = env::var_os("HOME").filter(|path| !path.is_empty());
    Ok(home.context("HOME is not set")?.into())
}

fn file() -> Result<PathBuf> {
    Ok(directory()?.join("config.toml"))
}

impl Profiles {
    /// Reads the file; there are no profiles without it.
    pub fn load() -> Result<Self> {
        let file = file()?;
        if !file.exists() {
            return Ok(Self::default());
        }
        wharf_secure_fs::check_secret(&file)?;
        let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        // The error of the parser would quote lines with keys.
        toml::from_str(&text).map_err(|error: toml::de::Error| {
            anyhow::anyhow!("{}: {}", file.display(), error.message())
        })
    }

    /// Writes the file, which only its owner can read.
    pub fn save(&self) -> Result<()> {
        let file = file()?;
        wharf_secure_fs::make_dir(&directory()?)?;
        let text = toml::to_string(self)?;
        wharf_secure_fs::write(&file, &[text.as_bytes()])
            .with_context(|| format!("cannot write {}", file.display()))
    }

    /// The profile of this name, or the current one.
    pub fn get(&self, name: Option<&str>) -> Result<(&str, &Profile)> {
        let Some(name) = name.or(self.current.as_deref()) else {
            let message = "You are not signed in. Sign in with `wharf login URL`.";
            return Err(Failure::NotSignedIn(message.to_owned()).into());
        };
        let found = self.profile.get_key_value(name);
        let (name, profile) = found.ok_or_else(|| {
            let names: Vec<_> = self.profile.keys().map(String::as_str).collect();
            let known = match names.as_slice() {
                [] => "there is none".to_owned(),
                names => format!("there are {}", names.join(", ")),
            };
            Failure::NotSignedIn(format!(
                "There is no profile {name:?}; {known}. `wharf login URL --profile {name}` makes it."
            ))
        })?;
        Ok((name, profile))
    }
}

//! The passwords of `[[registry]]`.

use std::fs;
use std::io;
use wharf_config::{Config, RegistryConfig};
use wharf_domain::secret::SecretText;
use wharf_engine::{RegistryAccount, encoded, encoded_for_builds};
use wharf_images::Accounts;
use wharf_secure_fs::{Untrusted, check_secret};

/// Shortest password, in bytes. A shorter one could not be hidden in the answers of engines: it may be a part of other
/// words.
const MIN: usize = 8;
/// Longest password, in bytes: tokens of registries are long.
const MAX: usize = 4096;

/// A password that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("setting `{setting}.password_file`")]
pub struct WrongRegistry {
    setting: String,
    source: PasswordError,
}

#[derive(Debug, thiserror::Error)]
enum PasswordError {
    #[error(transparent)]
    Untrusted(#[from] Untrusted),
    #[error("{path}")]
    Read { path: String, source: io::Error },
    #[error(
        "{path} must have one line, the password, of 8 to 4096 bytes without control characters"
    )]
    Form { path: String },
}

/// Reads the accounts of a configuration.
pub fn read_all(config: &Config) -> Result<Vec<RegistryAccount>, WrongRegistry> {
    let read = |account: &RegistryConfig| match password(account) {
        Ok(password) => Ok(RegistryAccount {
            registry: account.registry(),
            user: account.user.clone(),
            password,
        }),
        Err(source) => Err(WrongRegistry {
            setting: account.setting(),
            source,
        }),
    };
    config.registry.iter().map(read).collect()
}

/// The accounts of a configuration, for builds of images.
pub fn for_builds(config: &Config) -> Result<Accounts, WrongRegistry> {
    let all = read_all(config)?;
    let of_one = all.iter();
    Ok(Accounts {
        of_one: of_one
            .map(|account| (account.registry.clone(), encoded(account)))
            .collect(),
        of_builds: encoded_for_builds(&all),
    })
}

fn password(account: &RegistryConfig) -> Result<SecretText, PasswordError> {
    let file = &account.password_file;
    check_secret(file)?;
    let path = file.display().to_string();
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(source) => return Err(PasswordError::Read { path, source }),
    };
    let text = text.trim_end_matches(['\r', '\n']);
    if !(MIN..=MAX).contains(&text.len()) || text.chars().any(char::is_control) {
        return Err(PasswordError::Form { path });
    }
    Ok(SecretText::new(text))
}

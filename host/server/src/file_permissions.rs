//! Checks of the permissions of the files that Wharf trusts, before it uses any of them.

use std::path::Path;
use wharf_config::Config;
use wharf_secure_fs::{Untrusted, check_own, check_secret};

/// The key of the secrets, in `data_dir`.
const KEY: &str = "secret.key";

/// A setting with a path that other accounts can change or read.
#[derive(Debug, thiserror::Error)]
#[error("setting `{setting}`")]
pub struct WrongPermissions {
    setting: &'static str,
    #[source]
    source: Untrusted,
}

/// Refuses a data directory, a key, a secret or plugins that another account of this machine can
/// change.
pub fn check(config: &Config) -> Result<(), WrongPermissions> {
    let at = |setting| move |source| WrongPermissions { setting, source };
    check_own(&config.data_dir).map_err(at("data_dir"))?;
    let key = config.data_dir.join(KEY);
    if key.exists() {
        check_secret(&key).map_err(at("data_dir"))?;
    }
    if let Some(oidc) = &config.oidc {
        check_secret(&oidc.client_secret_file).map_err(at("oidc.client_secret_file"))?;
    }
    if let Some(acme) = config.pages.as_ref().and_then(|pages| pages.acme.as_ref()) {
        if let Some(program) = acme.program() {
            check_own(program).map_err(at("pages.acme.hook"))?;
        }
        if let Some(account) = &acme.external_account {
            let setting = "pages.acme.external_account.key_file";
            check_secret(&account.key_file).map_err(at(setting))?;
        }
    }
    if let Some(dir) = config.plugins_dir.as_deref().filter(|dir| dir.exists()) {
        plugins(dir).map_err(at("plugins_dir"))?;
    }
    Ok(())
}

fn plugins(dir: &Path) -> Result<(), Untrusted> {
    check_own(dir)?;
    let unknown = |source| Untrusted::Unknown {
        path: dir.to_owned(),
        source,
    };
    for entry in std::fs::read_dir(dir).map_err(unknown)? {
        check_own(&entry.map_err(unknown)?.path())?;
    }
    Ok(())
}

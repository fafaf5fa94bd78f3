//! Checks of the files that Wharf trusts, before it uses any of them.

use std::net::SocketAddr;
use std::path::Path;
use wharf_config::Config;
use wharf_secure_fs::{Untrusted, check_own, check_secret};

/// The key of the secrets, in `data_dir`.
const KEY: &str = "secret.key";

/// A setting whose path cannot be trusted.
#[derive(Debug, thiserror::Error)]
#[error("setting `{setting}`")]
pub struct TrustError {
    setting: &'static str,
    #[source]
    source: Untrusted,
}

/// Refuses a data directory, a key, a secret or plugins that another account of this machine can
/// change.
pub fn check(config: &Config) -> Result<(), TrustError> {
    let at = |setting| move |source| TrustError { setting, source };
    check_own(&config.data_dir).map_err(at("data_dir"))?;
    let key = config.data_dir.join(KEY);
    if key.exists() {
        check_secret(&key).map_err(at("data_dir"))?;
    }
    if let Some(oidc) = &config.oidc {
        check_secret(&oidc.client_secret_file).map_err(at("oidc.client_secret_file"))?;
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

/// Whether other machines reach this address without encryption.
pub fn is_plain_http(config: &Config, address: SocketAddr) -> bool {
    config.tls.is_none() && !address.ip().is_loopback()
}

/// Warns about API keys and passwords on a network without encryption.
pub fn warn_of_plain_http(config: &Config, address: SocketAddr) {
    if is_plain_http(config, address) {
        tracing::warn!(
            listen = %address,
            "plain HTTP on an address that other machines reach: API keys and passwords are \
             readable on the way; set `tls`, or listen on 127.0.0.1 behind a proxy with TLS"
        );
    }
}

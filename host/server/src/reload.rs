//! Reload of the configuration, the certificates and the passwords of registries on SIGHUP.

use crate::file_permissions::{self, WrongPermissions};
use crate::http;
use crate::node_tls::{self, WrongNodeTls};
use crate::proofs::{self, WithoutProof};
use crate::registries::{self, WrongRegistry};
use wharf_config::ConfigError;
use wharf_ground::config::SharedConfig;
use wharf_instances::App;

#[derive(Debug, thiserror::Error)]
enum ReloadError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Permissions(#[from] WrongPermissions),
    #[error(transparent)]
    Proof(#[from] WithoutProof),
    #[error(transparent)]
    Tls(#[from] http::InterfaceError),
    #[error(transparent)]
    Registry(#[from] WrongRegistry),
    #[error(transparent)]
    NodeTls(#[from] WrongNodeTls),
}

/// Reads the configuration file, the certificates and the passwords of registries again. If one of them cannot be
/// used, or another account can change a file that Wharf trusts, nothing changes, and the log says why.
pub fn reload(app: &App, config: &SharedConfig, interface: &http::Server) {
    match try_reload(app, config, interface) {
        Ok(changed) => tracing::info!(?changed, "the configuration is reloaded"),
        Err(error) => {
            let error = anyhow::Error::from(error);
            tracing::error!("the configuration stays as it was: {error:#}");
        }
    }
}

fn try_reload(
    app: &App,
    present: &SharedConfig,
    interface: &http::Server,
) -> Result<Vec<String>, ReloadError> {
    let (config, changed) = present.get().reload()?;
    file_permissions::check(&config)?;
    proofs::check(&config, app.plugins())?;
    let renewed = node_tls::read_all(&config.node)?;
    let accounts = registries::read_all(&config)?;
    interface.reload(&config)?;
    for (node, tls) in renewed {
        let driver = app.driver(&node);
        if let Some(transport) = driver.and_then(|driver| driver.transport()) {
            transport.renew(tls);
        }
    }
    app.plugins().registries().replace(&accounts);
    present.replace(config);
    interface.reloaded();
    Ok(changed)
}

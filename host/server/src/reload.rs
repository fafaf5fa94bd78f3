//! Reload of the configuration and the certificate on SIGHUP.

use crate::http;
use wharf_config::ConfigError;
use wharf_control::App;

#[derive(Debug, thiserror::Error)]
enum ReloadError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Tls(#[from] http::StartError),
}

/// Reads the configuration file and the certificate again. If either cannot be used, nothing changes,
/// and the log says why.
pub fn reload(app: &App, interface: &http::Server) {
    match try_reload(app, interface) {
        Ok(changed) => tracing::info!(?changed, "the configuration is reloaded"),
        Err(error) => {
            let error = anyhow::Error::from(error);
            tracing::error!("the configuration stays as it was: {error:#}");
        }
    }
}

fn try_reload(app: &App, interface: &http::Server) -> Result<Vec<String>, ReloadError> {
    let (config, changed) = app.config().reload()?;
    interface.reload(&config)?;
    app.reconfigure(config);
    Ok(changed)
}

//! The interface put together and running.

use super::admin;
use super::docs::Docs;
use super::handler::Handler;
use super::listen;
use super::request_id::RequestIds;
use super::router::Router;
use super::tls;
use crate::api::Api;
use crate::app::App;
use crate::config::Config;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Why the interface cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A TLS file.
    #[error("setting `{setting}`: {message}")]
    Tls {
        /// The setting that names it.
        setting: &'static str,
        /// What is wrong.
        message: String,
    },
    /// The admin service's socket, in the data directory.
    #[error("cannot listen on {path}")]
    AdminSocket {
        /// Where it should be.
        path: PathBuf,
        /// Why it cannot.
        source: std::io::Error,
    },
    /// What comes with the program does not fit together.
    #[error("the built-in interface description is broken: {0}")]
    Broken(String),
}

/// The running interface.
pub struct Server {
    rest: JoinHandle<()>,
    admin: JoinHandle<()>,
}

impl Server {
    /// Starts to serve: REST on the listener, over TLS only if the configuration has it, and the
    /// admin service on its socket. Both end when `stopped` turns true.
    pub fn start(
        config: &Config,
        listener: TcpListener,
        app: Arc<App>,
        stopped: watch::Receiver<bool>,
    ) -> Result<Self, StartError> {
        let limits = config.limits;
        let tls = config.tls.as_ref().map(tls::acceptor).transpose()?;
        let handler = Arc::new(handler(config, Arc::clone(&app))?);
        let admin = admin::start(config.admin_socket(), app, stopped.clone())?;
        let rest = tokio::spawn(async move {
            listen::serve(listener, handler, &limits, tls, stopped).await;
        });
        Ok(Self { rest, admin })
    }

    /// Waits until it has ended; running requests are finished, within the configured time.
    pub async fn finished(self) {
        let (rest, admin) = tokio::join!(self.rest, self.admin);
        for ended in [rest, admin] {
            if let Err(error) = ended {
                tracing::error!("a service did not end well: {error}");
            }
        }
    }
}

fn handler(config: &Config, app: Arc<App>) -> Result<Handler, StartError> {
    fn broken(error: impl std::fmt::Display) -> StartError {
        StartError::Broken(error.to_string())
    }
    Ok(Handler {
        docs: Docs::new(app.flavors(), &app.gpu_models()).map_err(broken)?,
        api: Api::new(app).map_err(broken)?,
        router: Router::new().map_err(broken)?,
        ids: RequestIds::default(),
        body_time: Duration::from_millis(config.limits.body_timeout_ms),
        max_requests: config.limits.max_connections,
        running: AtomicUsize::new(0),
    })
}

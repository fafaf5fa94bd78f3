//! The REST interface and the admin service, put together and running.

use super::admin;
use super::compress::Workers;
use super::docs::Docs;
use super::interface::Interface;
use super::listen::{self, Served};
use super::rate::Rates;
use super::routes;
use super::start_error::StartError;
use super::tls;
use super::unsent::Unsent;
use crate::api::Api;
use crate::essential::Essential;
use arc_swap::ArcSwap;
use axum::serve::ListenerExt;
use rustls::ServerConfig;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use wharf_config::Config;
use wharf_control::App;

/// The running interface.
pub struct Server {
    services: Essential,
    tls: Option<Arc<ArcSwap<ServerConfig>>>,
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
        fn broken(error: impl std::fmt::Display) -> StartError {
            StartError::Broken(error.to_string())
        }
        let limits = config.limits;
        let unsent = Unsent::new(limits.unsent_mib.saturating_mul(1 << 20));
        let interface = Interface {
            docs: Docs::new(app.flavors(), &app.gpu_models()).map_err(broken)?,
            api: Api::new(Arc::clone(&app)).map_err(broken)?,
            body_timeout: Duration::from_millis(limits.body_timeout_ms),
            in_flight: Arc::new(Semaphore::new(
                limits.max_connections.min(Semaphore::MAX_PERMITS),
            )),
            rates: Rates::new(&limits),
            unsent: Arc::clone(&unsent),
            workers: Workers::new(),
        };
        let tls = config.tls.as_ref().map(tls::read).transpose()?;
        let tls = tls.map(|tls| Arc::new(ArcSwap::new(tls)));
        let served = Served {
            router: routes::router(Arc::new(interface)),
            tls: tls.clone(),
            limits,
            unsent,
        };
        let admin = admin::start(config.admin_socket(), app, limits, stopped.clone())?;
        // Responses are written whole, so waiting for more data to send only costs time.
        let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
        let address = |address: &SocketAddr| Some(address.ip());
        let rest = tokio::spawn(listen::serve(listener, address, served, stopped));
        let mut services = Essential::default();
        services.add("the REST interface", rest);
        services.add("the admin service", admin);
        Ok(Self { services, tls })
    }

    /// Reads the certificate again. Connections that are open keep the earlier one.
    pub fn reload(&self, config: &Config) -> Result<(), StartError> {
        if let (Some(present), Some(tls)) = (&self.tls, &config.tls) {
            present.store(tls::read(tls)?);
        }
        Ok(())
    }

    /// Waits until one of the services ends, and returns its name.
    pub async fn ended(&mut self) -> &'static str {
        self.services.ended().await
    }

    /// Waits until both services have ended; running requests are finished, within the configured
    /// time.
    pub async fn finished(self) {
        self.services.finished().await;
    }
}

//! The REST interface and the admin service, put together and running.

use super::admin;
use super::attempts::Attempts;
use super::budget::{Budget, BudgetBounds};
use super::compress::Workers;
use super::docs::Docs;
use super::event_stream::Streams;
use super::forwarded;
use super::interface::Interface;
use super::listen::{self, Served};
use super::metrics::{self, HttpMetrics};
use super::rate::CallerRates;
use super::routes;
use super::start_error::InterfaceError;
use super::tls;
use super::unsent::Unsent;
use crate::api::Api;
use crate::oidc::Provider;
use crate::supervised_tasks::SupervisedTasks;
use arc_swap::ArcSwap;
use axum::serve::ListenerExt;
use prometheus_client::metrics::gauge::Gauge;
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
    services: SupervisedTasks,
    tls: Option<Arc<ArcSwap<ServerConfig>>>,
}

impl Server {
    /// Starts to serve: REST on the first listener, over TLS only if the configuration has it, metrics
    /// on the second one, and the admin service on its socket. All end when `stopped` turns true.
    pub fn start(
        config: &Config,
        (listener, metrics_listener): (TcpListener, Option<TcpListener>),
        app: Arc<App>,
        stopped: watch::Receiver<bool>,
    ) -> Result<Self, InterfaceError> {
        fn broken(error: impl std::fmt::Display) -> InterfaceError {
            InterfaceError::Broken(error.to_string())
        }
        let limits = config.limits;
        let unsent = Unsent::new(limits.unsent_mib.saturating_mul(1 << 20));
        let metrics = HttpMetrics::default();
        let interface = Interface {
            registry: metrics::registry(&metrics, &app),
            metrics: metrics.clone(),
            docs: Docs::new(app.flavors(), &app.gpu_models()).map_err(broken)?,
            api: Api::new(Arc::clone(&app)).map_err(broken)?,
            body_timeout: Duration::from_millis(limits.body_timeout_ms),
            in_flight: Arc::new(Semaphore::new(
                limits.max_connections.min(Semaphore::MAX_PERMITS),
            )),
            rates: CallerRates::new(&limits),
            attempts: Attempts::new(),
            forwarded: Budget::new(forwarded::bounds(&limits)),
            provider: Provider::new(),
            bodies: Budget::new(BudgetBounds::of_memory(
                limits.bodies_mib.saturating_mul(1 << 20),
            )),
            unsent: Arc::clone(&unsent),
            workers: Workers::new(),
            streams: Streams::new(&limits, metrics.event_streams.clone()),
            stopped: stopped.clone(),
        };
        let proxies = Arc::new(config.trusted_proxies.clone());
        let tls = config.tls.as_ref().map(tls::read).transpose()?;
        let tls = tls.map(|tls| Arc::new(ArcSwap::new(tls)));
        let interface = Arc::new(interface);
        let mut services = SupervisedTasks::default();
        if let Some(listener) = metrics_listener {
            let served = Served {
                router: metrics::router(Arc::clone(&interface)),
                tls: None,
                limits,
                unsent: Arc::clone(&unsent),
                proxies: Arc::clone(&proxies),
                open: Gauge::default(),
            };
            let address = |address: &SocketAddr| Some(address.ip());
            let scrapes = listen::serve(listener, address, served, stopped.clone());
            services.spawn("the metrics", scrapes);
        }
        let served = Served {
            router: routes::router(interface),
            tls: tls.clone(),
            limits,
            unsent,
            proxies,
            open: metrics.connections,
        };
        let admin = admin::start(config.admin_socket(), app, limits, stopped.clone())?;
        // Responses are written whole, so waiting for more data to send only costs time.
        let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
        let address = |address: &SocketAddr| Some(address.ip());
        let rest = listen::serve(listener, address, served, stopped);
        services.spawn("the REST interface", rest);
        services.spawn("the admin service", admin);
        Ok(Self { services, tls })
    }

    /// Reads the certificate again. Connections that are open keep the earlier one.
    pub fn reload(&self, config: &Config) -> Result<(), InterfaceError> {
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

//! The REST interface and the admin service, put together and running.

use super::admin;
use super::attempts::Attempts;
use super::budget::{Budget, BudgetBounds};
use super::compress::Workers;
use super::connection::{Connections, Timeouts};
use super::docs::Docs;
use super::event_stream::{MAX_STREAMS, Streams};
use super::forwarded;
use super::interface::Interface;
use super::listen::{self, Served};
use super::metrics::{self, HttpMetrics};
use super::pages::{self, PageListener, PageThreads, Pages};
use super::rate::CallerRates;
use super::routes;
use super::start_error::InterfaceError;
use super::tls::{Certificate, CertificateFiles};
use super::unsent::Unsent;
use crate::acme::Acme;
use crate::api::Api;
use crate::oidc::Provider;
use crate::supervised_tasks::SupervisedTasks;
use axum::serve::ListenerExt;
use prometheus_client::metrics::gauge::Gauge;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::{Notify, Semaphore, watch};
use wharf_accounts::Accounts;
use wharf_backups::Backups;
use wharf_config::Config;
use wharf_hooks::Webhooks;
use wharf_instances::App;

/// The running interface.
pub struct Server {
    services: SupervisedTasks,
    /// The certificates of the REST interface and of the pages.
    certificate: Option<Arc<Certificate>>,
    page_certificate: Option<Arc<Certificate>>,
    /// Wakes the task that orders the certificate of the pages.
    reloaded: Arc<Notify>,
    _page_threads: Option<PageThreads>,
}

/// The sockets that are served.
pub struct Listeners {
    pub rest: TcpListener,
    pub metrics: Option<TcpListener>,
    pub pages: Option<TcpListener>,
}

impl Server {
    /// Starts to serve on the listeners, over TLS only if the configuration has it, and the admin service on
    /// its socket. All end when `stopped` turns true.
    pub fn start(
        config: &Config,
        listeners: Listeners,
        app: Arc<App>,
        accounts: Arc<Accounts>,
        webhooks: Arc<Webhooks>,
        backups: Arc<Backups>,
        stopped: watch::Receiver<bool>,
    ) -> Result<Self, InterfaceError> {
        fn broken(error: impl std::fmt::Display) -> InterfaceError {
            InterfaceError::Broken(error.to_string())
        }
        let limits = config.limits;
        let unsent = Unsent::new(limits.unsent_mib.saturating_mul(1 << 20));
        let metrics = HttpMetrics::default();
        let attempts = Arc::new(Attempts::new());
        let of_acme = Arc::clone(&app);
        let interface = Interface {
            registry: metrics::registry(&metrics, &app, &accounts),
            metrics: metrics.clone(),
            docs: Docs::new(app.flavors(), &app.gpu_models()).map_err(broken)?,
            pages: Pages::new(&app, &accounts, &attempts, &metrics),
            api: Arc::new(Api::new(app, accounts, webhooks, backups).map_err(broken)?),
            in_flight: Arc::new(Semaphore::new(
                limits.max_connections.min(Semaphore::MAX_PERMITS),
            )),
            rates: CallerRates::new(&limits),
            attempts,
            forwarded: Budget::new(forwarded::bounds(&limits)),
            provider: Provider::new(),
            bodies: Budget::new(BudgetBounds::of_memory(
                limits.bodies_mib.saturating_mul(1 << 20),
            )),
            unsent: Arc::clone(&unsent),
            workers: Workers::new(),
            streams: Streams::new(MAX_STREAMS, &limits, metrics.event_streams.clone()),
            stopped: stopped.clone(),
        };
        let proxies = Arc::new(config.trusted_proxies.clone());
        let certificate = CertificateFiles::of_interface(config);
        let expiry = || metrics.certificate_of("interface");
        let certificate = certificate.map(|files| Certificate::read(files, expiry()));
        let certificate = certificate.transpose()?;
        let page_certificate = pages::certificate(config, &metrics)?;
        let interface = Arc::new(interface);
        let mut services = SupervisedTasks::default();
        for certificate in certificate.iter().chain(&page_certificate) {
            let follow = Arc::clone(certificate).follow(stopped.clone());
            services.spawn("the watch of certificates", follow);
        }
        let reloaded = Arc::new(Notify::new());
        if page_certificate.is_some() {
            let failures = metrics.acme_failures.clone();
            let acme = Acme::new(of_acme, failures, Arc::clone(&reloaded));
            services.spawn("the orders of certificates", acme.run(stopped.clone()));
        }
        let mut page_threads = None;
        if let (Some(pages), Some(listener)) = (&interface.pages, listeners.pages) {
            let listener = PageListener {
                listener,
                certificate: page_certificate.clone(),
                open: metrics.page_connections.clone(),
            };
            let started = listener.start(config, &pages.gateway, &mut services, &stopped)?;
            page_threads = Some(started);
        }
        let connections = |router| {
            Connections::new(
                router,
                Timeouts::of(&limits),
                Arc::clone(&unsent),
                Arc::clone(&proxies),
            )
        };
        if let Some(listener) = listeners.metrics {
            let served = Served {
                service: connections(metrics::router(Arc::clone(&interface))),
                tls: None,
                limits,
                proxies: Arc::clone(&proxies),
                open: Gauge::default(),
            };
            let address = |address: &SocketAddr| Some(address.ip());
            let scrapes = listen::serve(listener, address, served, stopped.clone());
            services.spawn("the metrics", scrapes);
        }
        let served = Served {
            service: connections(routes::router(Arc::clone(&interface))),
            tls: certificate
                .as_ref()
                .map(|certificate| Arc::clone(&certificate.present)),
            limits,
            proxies: Arc::clone(&proxies),
            open: metrics.connections,
        };
        let admin = admin::start(config.admin_socket(), interface, limits, stopped.clone())?;
        // Responses are written whole, so waiting for more data to send only costs time.
        let listener = listeners
            .rest
            .tap_io(|stream| drop(stream.set_nodelay(true)));
        let address = |address: &SocketAddr| Some(address.ip());
        let rest = listen::serve(listener, address, served, stopped);
        services.spawn("the REST interface", rest);
        services.spawn("the admin service", admin);
        Ok(Self {
            services,
            certificate,
            page_certificate,
            reloaded,
            _page_threads: page_threads,
        })
    }

    /// Reads the certificates again. Connections that are open keep the earlier ones.
    pub fn reload(&self, config: &Config) -> Result<(), InterfaceError> {
        for (certificate, files) in [
            (&self.certificate, CertificateFiles::of_interface(config)),
            (&self.page_certificate, CertificateFiles::of_pages(config)),
        ] {
            if let (Some(certificate), Some(files)) = (certificate, files) {
                certificate.reload(files)?;
            }
        }
        Ok(())
    }

    /// Orders a certificate now if one is due, with the settings of a reload.
    pub fn reloaded(&self) {
        self.reloaded.notify_one();
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

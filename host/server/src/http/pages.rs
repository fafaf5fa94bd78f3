//! Pages by name: their listener, and the gateway that answers there.

use super::activity::Activity;
use super::attempts::Attempts;
use super::client::RequestClient;
use super::listen::{self, ConnectionService, Served};
use super::metrics::HttpMetrics;
use super::page_directory::PageDirectory;
use super::start_error::InterfaceError;
use super::tls::{Certificate, CertificateFiles};
use crate::supervised_tasks::SupervisedTasks;
use axum::serve::ListenerExt;
use prometheus_client::metrics::gauge::Gauge;
use std::net::SocketAddr;
use std::num::NonZero;
use std::sync::Arc;
use std::thread::available_parallelism;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use wharf_accounts::Accounts;
use wharf_config::Config;
use wharf_instances::App;
use wharf_pages::{AcceptedConnection, Addresses, Gateway, GatewaySettings, PageLimits};

/// The page of the console that lets visitors in.
const SIGN_IN: &str = "/page";

/// A page of a few dozen assets has room for ten visitors at once, and a user for four such pages.
const LIMITS: PageLimits = PageLimits {
    connections_per_page: 500,
    connections_per_user: 2_000,
};

/// Pages by name.
pub(super) struct Pages {
    pub(super) gateway: Arc<Gateway>,
    pub(super) directory: Arc<PageDirectory>,
}

impl Pages {
    /// Makes the gateway, if the configuration has pages by name.
    pub(super) fn new(
        app: &Arc<App>,
        accounts: &Arc<Accounts>,
        attempts: &Arc<Attempts>,
        metrics: &HttpMetrics,
    ) -> Option<Self> {
        let config = app.config();
        let pages = config.pages.as_ref()?;
        let directory = Arc::new(PageDirectory::new(
            Arc::clone(app),
            Arc::clone(accounts),
            Arc::clone(attempts),
            metrics.clone(),
        ));
        let is_https = config.pages_are_https();
        let proxies = config.trusted_proxies.clone();
        let keys = Arc::clone(app);
        let settings = GatewaySettings {
            addresses: Addresses {
                is_https,
                domain: pages.domain.to_string(),
                port: pages.public_port(is_https),
            },
            sign_in: format!("{}{SIGN_IN}", config.base_url()),
            limits: LIMITS,
            cookie_key: Box::new(move || keys.cookie_key()),
            client: Box::new(move |peer, headers| {
                RequestClient::of(peer, headers, &proxies).address
            }),
        };
        let gateway = Arc::new(Gateway::new(directory.clone(), settings));
        Some(Self { gateway, directory })
    }
}

/// The threads of the pages. A download there does not delay the REST interface.
pub(super) struct PageThreads(Option<Runtime>);

impl Drop for PageThreads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// The listener of the pages, with its certificate.
pub(super) struct PageListener {
    pub(super) listener: TcpListener,
    pub(super) certificate: Option<Arc<Certificate>>,
    pub(super) open: Gauge,
}

impl PageListener {
    /// Serves pages on threads of their own until `stopped` turns true.
    pub(super) fn start(
        self,
        config: &Config,
        gateway: &Arc<Gateway>,
        services: &mut SupervisedTasks,
        stopped: &watch::Receiver<bool>,
    ) -> Result<PageThreads, InterfaceError> {
        let cores = available_parallelism().map_or(1, NonZero::get);
        let runtime = Builder::new_multi_thread()
            .enable_all()
            .worker_threads(cores.div_ceil(2))
            .thread_name("pages")
            .build()
            .map_err(InterfaceError::PageThreads)?;
        let listener = {
            let _entered = runtime.enter();
            let listener = self.listener.into_std();
            listener.and_then(TcpListener::from_std)
        };
        let listener = listener.map_err(InterfaceError::PageThreads)?;
        let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
        let served = Served {
            service: GatewayService(Arc::clone(gateway)),
            limits: config.limits,
            tls: self
                .certificate
                .map(|certificate| Arc::clone(&certificate.present)),
            proxies: Arc::new(config.trusted_proxies.clone()),
            open: self.open,
        };
        let address = |address: &SocketAddr| Some(address.ip());
        let pages = listen::serve(listener, address, served, stopped.clone());
        services.spawn_on(runtime.handle(), "the pages", pages);
        let (watched, stopped) = (Arc::clone(gateway), stopped.clone());
        let watch = async move { watched.watch(stopped).await };
        services.spawn_on(runtime.handle(), "the watch of pages", watch);
        Ok(PageThreads(Some(runtime)))
    }
}

/// The certificate of the pages; none over plain HTTP.
pub(super) fn certificate(
    config: &Config,
    metrics: &HttpMetrics,
) -> Result<Option<Arc<Certificate>>, InterfaceError> {
    let files = CertificateFiles::of_pages(config);
    let expiry = || metrics.certificate_of("pages");
    files
        .map(|files| Certificate::read(files, expiry()))
        .transpose()
}

/// Serves connections with the gateway.
struct GatewayService(Arc<Gateway>);

impl ConnectionService for GatewayService {
    async fn serve<I>(&self, io: I, activity: &Arc<Activity>, stopped: watch::Receiver<bool>)
    where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let Some(peer) = activity.peer else {
            return;
        };
        let welcomed = Arc::clone(activity);
        let accepted = AcceptedConnection {
            peer,
            welcome: Box::new(move || welcomed.authenticate()),
            stopped,
        };
        self.0.serve(io, accepted).await;
    }
}

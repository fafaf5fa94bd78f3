//! The HTTP client of requests to addresses of users. It connects to permitted addresses only.

use super::Outbound;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Client, Method, RequestBuilder, redirect};
use rustls::ClientConfig;
use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// A name has no address that is permitted.
#[derive(Debug, thiserror::Error)]
#[error("no permitted address")]
pub struct Refused;

/// A client whose requests are checked. Clones share it.
#[derive(Clone)]
pub struct CheckedClient {
    outbound: Outbound,
    client: Client,
}

impl CheckedClient {
    /// A client with these settings of TLS.
    pub fn new(outbound: Outbound, tls: ClientConfig) -> Result<Self, Box<dyn Error>> {
        let client = Client::builder()
            .user_agent(concat!("wharf/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            // A proxy would connect to addresses that Wharf has not checked.
            .no_proxy()
            .dns_resolver(Resolver(outbound.clone()))
            // A connection that is kept would outlive the check of its address.
            .pool_max_idle_per_host(0)
            .connect_timeout(CONNECT_LIMIT)
            .tls_backend_preconfigured(tls)
            .build()?;
        Ok(Self { outbound, client })
    }

    /// Begins a request. The reason for a refusal is in words for the user.
    pub async fn request(&self, method: Method, url: &str) -> Result<RequestBuilder, &'static str> {
        // The client does not resolve an address, so it is checked here.
        let url = self.outbound.check(url).await?;
        Ok(self.client.request(method, url))
    }
}

/// Resolves names to addresses that requests may reach. The client connects to these and no others.
struct Resolver(Outbound);

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let outbound = self.0.clone();
        Box::pin(async move {
            // The client replaces the port.
            let found = tokio::net::lookup_host((name.as_str(), 0)).await;
            let found = found.inspect_err(|error| {
                tracing::debug!(name = name.as_str(), %error, "the host of a request was not found");
            });
            let found = found.into_iter().flatten().map(|address| address.ip());
            let permitted = outbound.permitted(found).await;
            if permitted.is_empty() {
                // One error for names without an address and for private ones, or the user could tell
                // the names of the service's network from others.
                Err(Refused.into())
            } else {
                let addresses = permitted
                    .into_iter()
                    .map(|address| SocketAddr::new(address, 0));
                Ok(Box::new(addresses) as Addrs)
            }
        })
    }
}

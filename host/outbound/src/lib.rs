//! Requests that Wharf sends to addresses of its users. They reach no address that only Wharf's network
//! reaches, unless the operator allows it.

mod address;
mod client;
mod own_addresses;

pub use client::{CheckedClient, Refused};
pub use reqwest;

use address::{check_url, permits};
use own_addresses::OwnAddresses;
use reqwest::Url;
use std::net::IpAddr;
use std::sync::Arc;
use wharf_config::{Config, OutboundConfig};
use wharf_ground::config::SharedConfig;

/// The addresses that requests of one kind may have, by the present configuration. Clones share what they
/// looked up.
#[derive(Clone)]
pub struct Outbound {
    config: SharedConfig,
    section: fn(&Config) -> &OutboundConfig,
    own: Arc<OwnAddresses>,
}

impl Outbound {
    /// The addresses by a section of the configuration.
    pub fn new(config: SharedConfig, section: fn(&Config) -> &OutboundConfig) -> Self {
        Self {
            config,
            section,
            own: Arc::default(),
        }
    }

    /// Parses a URL. The reason for a refusal is in words for the user.
    pub async fn check(&self, url: &str) -> Result<Url, &'static str> {
        let (config, own) = self.rules().await;
        check_url((self.section)(&config), &own, url)
    }

    /// Returns the addresses that a request may connect to.
    async fn permitted(&self, found: impl Iterator<Item = IpAddr>) -> Vec<IpAddr> {
        let (config, own) = self.rules().await;
        found
            .filter(|address| permits((self.section)(&config), &own, *address))
            .collect()
    }

    /// The configuration, and the addresses of this service that no request reaches unless the configuration
    /// allows it.
    async fn rules(&self) -> (Arc<Config>, Vec<IpAddr>) {
        let config = self.config.get();
        let own = self.own.of(&config).await;
        (config, own)
    }
}

//! The present configuration of a server, which a reload replaces.

use arc_swap::ArcSwap;
use std::net::SocketAddr;
use std::sync::Arc;
use wharf_config::Config;

/// The present configuration. Clones share it.
#[derive(Clone)]
pub struct SharedConfig(Arc<ArcSwap<Config>>);

impl SharedConfig {
    pub fn new(config: Arc<Config>) -> Self {
        Self(Arc::new(ArcSwap::new(config)))
    }

    /// Returns the present configuration.
    pub fn get(&self) -> Arc<Config> {
        self.0.load_full()
    }

    /// Replaces the configuration. Only settings that [`Config::reload`] permits may differ.
    pub fn replace(&self, mut config: Config) {
        let present = self.get();
        let pages = present.pages.as_ref().map(|pages| pages.listen);
        set_addresses(&mut config, present.listen, pages);
        self.0.store(Arc::new(config));
    }

    /// Notes the addresses of the REST interface and of the pages, which differ from the settings if their
    /// ports are 0.
    pub fn listening(&self, rest: SocketAddr, pages: Option<SocketAddr>) {
        let mut config = Config::clone(&self.get());
        set_addresses(&mut config, rest, pages);
        self.0.store(Arc::new(config));
    }
}

fn set_addresses(config: &mut Config, rest: SocketAddr, pages: Option<SocketAddr>) {
    config.listen = rest;
    if let (Some(setting), Some(address)) = (&mut config.pages, pages) {
        setting.listen = address;
    }
}

//! Wharf itself, as a process.

use crate::data::Data;
use crate::process;
use anyhow::{Context, Result};
use std::path::Path;
use std::time::{Duration, Instant};
use xtask::compiled;
use xtask::server::Server;

/// A running Wharf.
pub struct Wharf {
    server: Server,
    /// From the start of its process until it listened.
    pub took: Duration,
}

impl Wharf {
    /// Starts it on a data directory.
    pub fn on(data: &Data) -> Result<Self> {
        Self::start(&data.config(), &data.log())
    }

    /// Starts it with a configuration, beside which is its `data`.
    pub fn start(config: &Path, log: &Path) -> Result<Self> {
        compiled::lent(&config.with_file_name("data"), || {
            let begin = Instant::now();
            let server = Server::start(config, log)?;
            let took = begin.elapsed();
            Ok(Self { server, took })
        })
    }

    /// `HOST:PORT`.
    pub fn address(&self) -> Result<String> {
        let address = self.server.url().strip_prefix("http://");
        Ok(address.context("not plain HTTP")?.to_owned())
    }

    /// CPU time so far.
    pub fn cpu_time(&self) -> Duration {
        process::cpu_time(self.server.process_id())
    }

    /// Memory now, KiB.
    pub fn resident_kib(&self) -> u64 {
        process::resident_kib(self.server.process_id())
    }

    /// Ends it as a crash does.
    pub fn kill(self) -> Result<()> {
        self.server.kill()
    }

    /// The body of an answer.
    pub fn body(&self, path: &str, key: &str) -> Result<Vec<u8>> {
        let request = xtask::http::Request::new("GET", path).key(key);
        Ok(self.server.client()?.send(request)?.ok()?.body)
    }
}

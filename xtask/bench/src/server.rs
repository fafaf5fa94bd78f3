//! Wharf, as a process.

use crate::data::Data;
use crate::process;
use anyhow::{Context, Result};
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, Instant};
use wharf_testkit::http::Request;
use wharf_testkit::server::Server;

/// A running Wharf.
pub struct Wharf {
    server: Server,
    /// The time from the start of the process until it listened.
    pub start_time: Duration,
}

impl Wharf {
    /// Starts a server on a data directory.
    pub fn on(data: &Data) -> Result<Self> {
        Self::start(&data.config(), &data.log())
    }

    /// Starts a server with a configuration; the data directory is `data` beside it.
    pub fn start(config: &Path, log: &Path) -> Result<Self> {
        let begin = Instant::now();
        let server = Server::start(config, log)?;
        let start_time = begin.elapsed();
        Ok(Self { server, start_time })
    }

    /// `HOST:PORT`.
    pub fn address(&self) -> Result<String> {
        let address = self.server.url().strip_prefix("http://");
        Ok(address.context("not plain HTTP")?.to_owned())
    }

    /// The CPU time so far.
    pub fn cpu_time(&self) -> Duration {
        process::cpu_time(self.server.process_id())
    }

    /// The memory in use, KiB.
    pub fn resident_kib(&self) -> u64 {
        process::resident_kib(self.server.process_id())
    }

    /// The most memory that work takes beyond what is in use before, MiB.
    pub fn memory_during(&self, work: impl FnOnce() -> Result<()>) -> Result<f64> {
        let id = self.server.process_id();
        let before = process::forget_peak(id)?;
        work()?;
        Ok(process::peak_kib(id).saturating_sub(before) as f64 / 1024.0)
    }

    /// Kills the process, as a crash would.
    pub fn kill(self) -> Result<()> {
        self.server.kill()
    }

    /// Creates an instance.
    pub fn create(&self, wanted: Value, key: &str) -> Result<Value> {
        let request = Request::new("POST", "/api/instance/").key(key).json(wanted);
        let response = self.server.client()?.send(request)?.ok()?;
        Ok(serde_json::from_slice(&response.body)?)
    }

    /// The body of a response; fails unless the status is 2xx.
    pub fn body(&self, path: &str, key: &str) -> Result<Vec<u8>> {
        let request = Request::new("GET", path).key(key);
        Ok(self.server.client()?.send(request)?.ok()?.body)
    }
}

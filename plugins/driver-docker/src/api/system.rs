//! Requests about the engine itself.

use super::model::{Info, Version};
use super::{Api, Reply, accepted};
use crate::product::Product;
use wharf_guest::Error;
use wharf_guest::NamedRequest;

/// For this request, Podman counts its containers, waits for each that is in use, and asks the
/// package manager about its helpers.
const INFO_MS: u32 = 30_000;

impl Api<'_> {
    /// Reads the product from the headers of a cheap request. None if a proxy has removed the
    /// headers.
    pub fn ping(&self) -> Result<Reply<Option<Product>>, Error> {
        let answer = accepted(NamedRequest::new("ping").send(self.engine)?);
        Ok(answer.map(|answer| {
            Product::of_headers(answer.header("Server")?, answer.header("Api-Version")?)
        }))
    }

    /// Reads the engine's version. On Podman it is as slow as [`Self::info`].
    pub fn version(&self) -> Result<Reply<Version>, Error> {
        self.read(&NamedRequest::new("version").timeout_ms(INFO_MS))
    }

    /// Reads the node's resources.
    pub fn info(&self) -> Result<Reply<Info>, Error> {
        self.read(&NamedRequest::new("info").timeout_ms(INFO_MS))
    }
}

//! The engine itself.

use super::model::{Info, Version};
use super::{Api, Reply, accepted};
use crate::product::Product;
use wharf_guest::{Call, Error};

/// Podman counts its containers for this, and waits for each that is being worked on; it also asks
/// the package manager about its helpers.
const INFO_MS: u32 = 30_000;

impl Api<'_> {
    /// What it says of itself in the headers of an answer that costs it nothing. None: something
    /// between here and there has removed them.
    pub fn ping(&self) -> Result<Reply<Option<Product>>, Error> {
        let answer = accepted(Call::get(&self.path("/_ping")).send(self.engine)?);
        Ok(answer.map(|answer| {
            Product::of_headers(answer.header("Server")?, answer.header("Api-Version")?)
        }))
    }

    /// What it is. Costs a Podman as much as [`Self::info`].
    pub fn version(&self) -> Result<Reply<Version>, Error> {
        let call = Call::get(&self.path("/version")).timeout_ms(INFO_MS);
        self.read(&call)
    }

    /// What it has.
    pub fn info(&self) -> Result<Reply<Info>, Error> {
        let call = Call::get(&self.path("/info")).timeout_ms(INFO_MS);
        self.read(&call)
    }
}

//! The engine itself.

use super::model::{Info, Version};
use super::{Api, Reply};
use wharf_guest::Error;

impl Api<'_> {
    /// What it is.
    pub fn version(&self) -> Result<Reply<Version>, Error> {
        self.get(&self.path("/version"))
    }

    /// What it has.
    pub fn info(&self) -> Result<Reply<Info>, Error> {
        self.get(&self.path("/info"))
    }
}

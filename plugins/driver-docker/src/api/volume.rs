//! Requests about the volume that marks the engine's store.

use super::{Api, Reply};
use serde::Deserialize;
use std::collections::BTreeMap;
use wharf_guest::Call;
use wharf_guest::Error;

/// A volume.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Volume {
    /// Its labels; null if it has none.
    #[serde(default)]
    pub labels: Option<BTreeMap<String, String>>,
}

impl Api<'_> {
    /// Creates the volume with the mark of the call. Success if it exists already.
    pub fn mark_store(&self) -> Result<Reply<()>, Error> {
        self.send(&Call::named("mark-store"))
    }

    /// Reads the volume with the mark.
    pub fn store(&self) -> Result<Reply<Volume>, Error> {
        self.read(&Call::named("read-store"))
    }
}

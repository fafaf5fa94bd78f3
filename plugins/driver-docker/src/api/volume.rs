//! Requests to `/volumes`.

use super::{Api, Reply};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use wharf_guest::{Call, Error};

/// A volume.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Volume {
    /// Its labels; null if it has none.
    #[serde(default)]
    pub labels: Option<BTreeMap<String, String>>,
}

impl Api<'_> {
    /// Creates a volume. Success if it exists already.
    pub fn create_volume<T: Serialize>(&self, body: &T) -> Result<Reply<()>, Error> {
        self.send(&Call::post(&self.path("/volumes/create")).json(body)?)
    }

    /// Reads a volume.
    pub fn volume(&self, name: &str) -> Result<Reply<Volume>, Error> {
        self.get(&self.path("/volumes").segment(name))
    }
}

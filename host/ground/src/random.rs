//! Random bytes from the kernel, or from a source that a simulation hands in.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::sync::Arc;
use uuid::{Builder, Uuid};
use wharf_domain::error::Error;
use wharf_domain::time::Timestamp;

/// Fills a buffer with random bytes.
pub fn fill(bytes: &mut [u8]) -> Result<(), Error> {
    getrandom::fill(bytes).map_err(|e| Error::caused("no random numbers", e))
}

/// Random bytes as text for URLs.
pub fn random_text<const BYTES: usize>() -> Result<String, Error> {
    Random::kernel().text::<BYTES>()
}

/// Fills a buffer.
type Fill = dyn Fn(&mut [u8]) -> Result<(), Error> + Send + Sync;

/// A source of random bytes. Clones share it.
#[derive(Clone)]
pub struct Random(Arc<Fill>);

impl Random {
    /// The kernel's random bytes.
    pub fn kernel() -> Self {
        Self::of(fill)
    }

    /// The bytes of a source.
    pub fn of(source: impl Fn(&mut [u8]) -> Result<(), Error> + Send + Sync + 'static) -> Self {
        Self(Arc::new(source))
    }

    /// Fills a buffer.
    pub fn fill(&self, bytes: &mut [u8]) -> Result<(), Error> {
        (self.0)(bytes)
    }

    /// Bytes as text for URLs.
    pub fn text<const BYTES: usize>(&self) -> Result<String, Error> {
        let mut bytes = [0; BYTES];
        self.fill(&mut bytes)?;
        Ok(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// A number.
    pub fn number(&self) -> Result<u64, Error> {
        let mut bytes = [0; 8];
        self.fill(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// An id. Ids of different milliseconds are in the order of time.
    pub fn id(&self, at: Timestamp) -> Result<Uuid, Error> {
        let mut bytes = [0; 10];
        self.fill(&mut bytes)?;
        let millis = u64::try_from(at.0).unwrap_or_default();
        Ok(Builder::from_unix_timestamp_millis(millis, &bytes).into_uuid())
    }
}

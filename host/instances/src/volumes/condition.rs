//! Conditions of requests (`If-Match`) on volumes, decided within the write.

use super::read::{VolumeView, view};
use crate::volumes::find::Reader;
use std::sync::Arc;
use wharf_db::Rows;
use wharf_domain::error::Error;
use wharf_domain::volume::Volume;

type Check = dyn Fn(&VolumeView) -> Result<bool, Error> + Send + Sync;

/// A condition on the volume that a request changes. The default one always holds.
#[derive(Clone, Default)]
pub struct VolumeCondition(Option<Arc<Check>>);

impl VolumeCondition {
    /// Creates a condition from a function that decides whether it holds.
    pub fn new(check: impl Fn(&VolumeView) -> Result<bool, Error> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(check)))
    }

    /// Fails if the condition does not hold.
    pub(super) fn check(
        &self,
        rows: &impl Rows,
        reader: &Reader,
        volume: &Volume,
    ) -> Result<(), Error> {
        match &self.0 {
            Some(check) if !check(&view(rows, reader, volume.clone())?)? => {
                Err(Error::PreconditionFailed)
            }
            _ => Ok(()),
        }
    }
}

//! The parts of use cases that volumes and snapshots share.

use std::sync::Arc;
use wharf_db::{Changes, KeptTable};
use wharf_domain::error::Error;
use wharf_domain::kept::{Kept, KeptEvent};
use wharf_domain::time::Timestamp;

type Check<V> = dyn Fn(&V) -> Result<bool, Error> + Send + Sync;

/// A condition on the volume or snapshot that a request changes (`If-Match`), decided within the write. The
/// default one always holds.
pub struct KeptCondition<V>(Option<Arc<Check<V>>>);

impl<V> Clone for KeptCondition<V> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<V> Default for KeptCondition<V> {
    fn default() -> Self {
        Self(None)
    }
}

impl<V> KeptCondition<V> {
    /// Creates a condition from a function that decides whether it holds.
    pub fn new(check: impl Fn(&V) -> Result<bool, Error> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(check)))
    }

    /// Fails if the condition does not hold.
    pub(crate) fn check(&self, view: impl FnOnce() -> Result<V, Error>) -> Result<(), Error> {
        match &self.0 {
            Some(check) if !check(&view()?)? => Err(Error::PreconditionFailed),
            _ => Ok(()),
        }
    }
}

/// The place of a new row in the order of creation. Places of removed rows are not taken again, so that a
/// client's page stays in its place.
pub(crate) fn next_seq(last: Option<u64>, now: Timestamp) -> u64 {
    let now = u64::try_from(now.0).unwrap_or_default();
    last.map_or(now, |last| now.max(last.saturating_add(1)))
}

/// Deletes it for its user. Its claim is released once the node was seen without it.
pub(crate) fn delete<K: KeptTable>(mut row: Kept<K>, now: Timestamp, what: KeptEvent) -> Changes {
    row.deleted = true;
    let changes = Changes::none().record_kept(row.clone(), now, what);
    // A lost one is on no node.
    if row.is_lost() {
        changes.drop_kept(&row)
    } else {
        changes
    }
}

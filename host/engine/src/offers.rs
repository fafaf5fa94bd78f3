//! Offers: the content of an instance that leaves its engine, until the engine of another node takes it. No guest
//! learns anything of the other node.

#[cfg(test)]
mod tests;

use super::message::EngineError;
use super::transfer::TransferSource;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How long an offer may be taken.
const FRESH: Duration = Duration::from_secs(10 * 60);
/// Most offers at a time. Drains move four instances of each node at once.
const MAX_OFFERS: usize = 1024;

/// The offers of all nodes, by instance.
#[derive(Debug, Default)]
pub struct Offers(Mutex<HashMap<String, Offer>>);

#[derive(Debug)]
struct Offer {
    /// The kind of engine, which determines the form of the archive.
    kind: String,
    source: TransferSource,
    at: Instant,
}

impl Offers {
    /// Offers the content of an instance, in place of an earlier offer.
    pub(super) fn put(
        &self,
        instance: String,
        kind: String,
        source: TransferSource,
    ) -> Result<(), EngineError> {
        let mut offers = self.0.lock();
        offers.retain(|_, offer| offer.at.elapsed() < FRESH);
        if offers.len() >= MAX_OFFERS && !offers.contains_key(&instance) {
            let why = format!("{MAX_OFFERS} instances are on their way between engines");
            return Err(EngineError::Unreachable(why));
        }
        let offer = Offer {
            kind,
            source,
            at: Instant::now(),
        };
        offers.insert(instance, offer);
        Ok(())
    }

    /// Takes the offer of an instance for an engine of this kind.
    pub(super) fn take(&self, instance: &str, kind: &str) -> Result<TransferSource, EngineError> {
        let offer = self.0.lock().remove(instance);
        let offer = offer.filter(|offer| offer.at.elapsed() < FRESH);
        let offer = offer
            .ok_or_else(|| EngineError::Unreachable("no other engine offers the content".into()))?;
        if offer.kind != kind {
            let why = format!("the content is of an engine of kind {:?}", offer.kind);
            return Err(EngineError::Refused(why));
        }
        Ok(offer.source)
    }
}

//! Offers: the content for an instance or a volume, until an engine takes it. It leaves the engine of another node, or
//! comes from an object. The objects that take the content of snapshots and volumes wait here as well. Each of them has
//! the id that an instance in its place would have. No guest learns anything of either.

#[cfg(test)]
mod tests;

use super::message::EngineError;
use super::objects::{ObjectContent, ObjectSource, ObjectTarget};
use super::transfer::{ContentSource, TransferSource};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::{Duration, Instant};
use wharf_domain::ids::InstanceId;

/// How long the offer of an engine may be taken. The content of an object is offered until its owner withdraws it.
const FRESH: Duration = Duration::from_secs(10 * 60);
/// Most offers at a time. Drains move four instances of each node at once.
const MAX_OFFERS: usize = 1024;

/// The offers of all nodes.
#[derive(Debug, Default)]
pub struct Offers {
    by_taker: Mutex<HashMap<String, Offer>>,
    /// The objects for the content of snapshots and volumes.
    by_source: Mutex<HashMap<InstanceId, ObjectTarget>>,
}

#[derive(Debug)]
struct Offer {
    /// The kind of engine, which determines the form of the archive.
    kind: String,
    source: ContentSource,
    at: Instant,
}

impl Offer {
    fn is_fresh(&self) -> bool {
        matches!(self.source, ContentSource::Object(_)) || self.at.elapsed() < FRESH
    }
}

impl Offers {
    /// Offers the content of an object for an instance or a volume, in place of an earlier offer.
    pub fn put_object(
        &self,
        taker: InstanceId,
        kind: &str,
        object: ObjectSource,
    ) -> Result<(), EngineError> {
        let source = ContentSource::Object(object);
        self.offer(taker.to_string(), kind.to_owned(), source)
    }

    /// Whether the content for an instance or a volume waits for an engine.
    pub fn waits(&self, taker: InstanceId) -> bool {
        self.by_taker.lock().contains_key(&taker.to_string())
    }

    /// Withdraws the content for an instance or a volume, if no engine has taken it.
    pub fn withdraw(&self, taker: InstanceId) {
        self.by_taker.lock().remove(&taker.to_string());
    }

    /// Makes an object that takes the content of a snapshot or a volume, in place of an earlier object.
    pub fn make_object(&self, source: InstanceId) -> ObjectContent {
        let (target, content) = ObjectTarget::new();
        self.by_source.lock().insert(source, target);
        content
    }

    /// Drops the object for a snapshot or a volume, if no engine has taken it.
    pub fn drop_object(&self, source: InstanceId) {
        self.by_source.lock().remove(&source);
    }

    /// Takes the object for a snapshot or a volume.
    pub fn take_object(&self, source: InstanceId) -> Result<ObjectTarget, EngineError> {
        let object = self.by_source.lock().remove(&source);
        object.ok_or_else(|| EngineError::Unreachable("nothing takes the content".to_owned()))
    }

    /// Takes the object with the content for an instance or a volume. A simulation without engines calls this.
    pub fn take_source(&self, taker: InstanceId) -> Option<ObjectSource> {
        match self.by_taker.lock().remove(&taker.to_string())?.source {
            ContentSource::Object(object) => Some(object),
            ContentSource::Engine(_) => None,
        }
    }

    /// Offers the content of an instance on another node, in place of an earlier offer.
    pub(super) fn put(
        &self,
        instance: String,
        kind: String,
        source: TransferSource,
    ) -> Result<(), EngineError> {
        self.offer(instance, kind, ContentSource::Engine(source))
    }

    fn offer(
        &self,
        instance: String,
        kind: String,
        source: ContentSource,
    ) -> Result<(), EngineError> {
        let mut offers = self.by_taker.lock();
        offers.retain(|_, offer| offer.is_fresh());
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
    pub(super) fn take(&self, instance: &str, kind: &str) -> Result<ContentSource, EngineError> {
        let offer = self.by_taker.lock().remove(instance);
        let offer = offer.filter(Offer::is_fresh);
        let offer =
            offer.ok_or_else(|| EngineError::Unreachable("nothing offers the content".into()))?;
        if offer.kind != kind {
            let why = format!("the content is of an engine of kind {:?}", offer.kind);
            return Err(EngineError::Refused(why));
        }
        Ok(offer.source)
    }
}

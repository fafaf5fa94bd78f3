//! A bounded cache of rendered lists. A list is valid as long as its version is the one that the
//! database has for its owner, so the cache needs no invalidation.

use super::tag::tag;
use super::wire::Sight;
use bytes::Bytes;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use std::sync::{Arc, OnceLock};
use wharf_domain::ids::UserId;

/// The approximate memory of an entry without its body.
const ENTRY_BYTES: usize = 256;
/// The usual size of a body; sizes the cache's own tables.
const USUAL_BYTES: u64 = 1024;

/// A rendered list.
pub struct List {
    pub(super) version: u64,
    /// The JSON array.
    pub body: Bytes,
    /// The entity tag of the body.
    pub tag: String,
    pub sight: Sight,
    /// The body compressed, once a client has asked for that.
    pub gzipped: OnceLock<Bytes>,
}

impl List {
    /// Takes a rendered body.
    pub fn new(version: u64, body: Bytes, sight: Sight) -> Self {
        Self {
            version,
            sight,
            tag: tag(&body),
            body,
            gzipped: OnceLock::new(),
        }
    }
}

/// Rendered lists by owner and sight.
pub(super) struct ListCache(Cache<Key, Arc<List>, Weight>);

type Key = (UserId, Sight);

#[derive(Clone)]
struct Weight;

impl Weighter<Key, Arc<List>> for Weight {
    fn weight(&self, _: &Key, list: &Arc<List>) -> u64 {
        // A compressed list is about an eighth.
        let bytes = ENTRY_BYTES + list.body.len() + list.body.len() / 8;
        u64::try_from(bytes).unwrap_or(u64::MAX / 2)
    }
}

impl ListCache {
    /// Makes a cache of at most this many bytes.
    pub fn new(bytes: u64) -> Self {
        let items = usize::try_from(bytes / USUAL_BYTES).unwrap_or(usize::MAX);
        // One shard: an item must fit into its shard, and a list can be a large part of the cache.
        let options = OptionsBuilder::new()
            .estimated_items_capacity(items)
            .weight_capacity(bytes)
            .shards(1)
            .build();
        Self(options.map_or_else(
            |_| Cache::with_weighter(items, bytes, Weight),
            |options| {
                let (hashes, lifecycle) =
                    (DefaultHashBuilder::default(), DefaultLifecycle::default());
                Cache::with_options(options, Weight, hashes, lifecycle)
            },
        ))
    }

    /// The list of an owner, of whatever version.
    pub fn get(&self, owner: UserId, sight: Sight) -> Option<Arc<List>> {
        self.0.get(&(owner, sight))
    }

    /// Keeps a list instead of the owner's earlier one.
    pub fn insert(&self, owner: UserId, list: Arc<List>) {
        self.0.insert((owner, list.sight), list);
    }
}

#[cfg(test)]
mod tests {
    use super::{List, ListCache, Sight};
    use std::sync::Arc;
    use wharf_domain::ids::UserId;

    #[test]
    fn a_list_of_ten_thousand_instances_is_kept() {
        let cache = ListCache::new(64 << 20);
        let list = List::new(1, vec![b' '; 10 << 20].into(), Sight::Whole);
        cache.insert(UserId(1), Arc::new(list));
        let version = |sight| cache.get(UserId(1), sight).map(|list| list.version);
        assert_eq!(version(Sight::Whole), Some(1));
        assert_eq!(version(Sight::WithoutPassword), None);
    }
}

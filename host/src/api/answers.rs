//! A bounded cache of rendered lists. A list is valid as long as its version is the one that the
//! database has for its owner, so the cache needs no invalidation.

use crate::domain::error::Error;
use crate::domain::ids::UserId;
use bytes::Bytes;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

/// The approximate memory of an entry without its body.
const ENTRY_BYTES: u64 = 160;
/// The usual size of a body; sizes the cache's own tables.
const USUAL_BYTES: u64 = 1024;

/// Rendered lists by owner.
pub(super) struct ResponseCache(Cache<UserId, Response, Weight>);

#[derive(Clone)]
struct Response {
    version: u64,
    body: Bytes,
}

#[derive(Clone)]
struct Weight;

impl Weighter<UserId, Response> for Weight {
    fn weight(&self, _: &UserId, response: &Response) -> u64 {
        ENTRY_BYTES + u64::try_from(response.body.len()).unwrap_or(u64::MAX / 2)
    }
}

impl ResponseCache {
    /// Makes a cache of at most this many bytes.
    pub fn new(bytes: u64) -> Self {
        let items = usize::try_from(bytes / USUAL_BYTES).unwrap_or(usize::MAX);
        Self(Cache::with_weighter(items, bytes, Weight))
    }

    /// The body of an owner's list. `render` gets the version of the cached body and returns the
    /// present version with its body, or none if the cached one is still valid.
    pub fn body(
        &self,
        owner: UserId,
        render: impl FnOnce(Option<u64>) -> Result<Option<(u64, Bytes)>, Error>,
    ) -> Result<Bytes, Error> {
        let cached = self.0.get(&owner);
        let known = cached.as_ref().map(|response| response.version);
        match (render(known)?, cached) {
            (Some((version, body)), _) => {
                let response = Response {
                    version,
                    body: body.clone(),
                };
                self.0.insert(owner, response);
                Ok(body)
            }
            (None, Some(response)) => Ok(response.body),
            (None, None) => Err(Error::Internal("no list is cached".to_owned())),
        }
    }
}

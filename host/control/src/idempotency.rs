//! Idempotency keys of create requests. A key is durable in the write of its instance, so that a
//! retry after a crash gets the first answer.

use super::{App, Caller, InstanceView};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::sync::Arc;
use wharf_db::{Change, IdempotencyDigest, IdempotentCreate, Read};
use wharf_domain::error::Error;
use wharf_domain::ids::UserId;
use wharf_domain::instance::Instance;
use wharf_domain::time::Timestamp;

/// The time for which a key is kept.
const KEPT_MS: i64 = 24 * 60 * 60 * 1000;

/// The idempotency key of a request, with its body. Only digests are kept.
#[derive(Debug, Clone, Copy)]
pub struct IdempotencyKey {
    key: IdempotencyDigest,
    body: [u8; 32],
}

impl IdempotencyKey {
    /// Takes the key and the body of a request.
    pub fn new(key: &str, body: &[u8]) -> Self {
        // A body may have a secret that can be guessed. The key, which is not stored, is its salt.
        let salted = Sha256::new().chain_update(key).chain_update([0]);
        Self {
            key: Sha256::digest(key).into(),
            body: salted.chain_update(body).finalize().into(),
        }
    }

    /// Returns the instance of an earlier request with the key.
    pub(super) fn earlier(
        &self,
        rows: &impl Read,
        owner: UserId,
        now: Timestamp,
    ) -> Result<Option<Instance>, Error> {
        match rows.idempotent_create(owner, self.key)? {
            Some(earlier) if earlier.at < expiry(now) => Ok(None),
            Some(earlier) if earlier.body != self.body => Err(Error::IdempotencyKeyUsed),
            earlier => Ok(earlier.map(|earlier| earlier.instance)),
        }
    }

    /// Returns the change that keeps the key with a new instance.
    pub(super) fn kept(&self, instance: Instance, now: Timestamp) -> Change {
        let create = IdempotentCreate {
            body: self.body,
            at: now,
            instance,
        };
        Change::PutIdempotent(self.key, Box::new(create), expiry(now))
    }
}

fn expiry(now: Timestamp) -> Timestamp {
    Timestamp(now.0.saturating_sub(KEPT_MS))
}

type Busy = Mutex<HashSet<(UserId, IdempotencyDigest)>>;

/// The keys of requests in progress.
#[derive(Debug, Default)]
pub(super) struct InFlight(Arc<Busy>);

/// A key of a request in progress, until it is dropped.
#[derive(Debug)]
pub struct HeldKey {
    busy: Arc<Busy>,
    key: (UserId, IdempotencyDigest),
}

impl Drop for HeldKey {
    fn drop(&mut self) {
        let mut busy = self.busy.lock();
        busy.remove(&self.key);
    }
}

impl App {
    /// Reserves an idempotency key for a request. Fails if another request in progress has it.
    pub fn hold_key(&self, caller: &Caller, key: &IdempotencyKey) -> Result<HeldKey, Error> {
        let busy = Arc::clone(&self.in_flight.0);
        let key = (caller.user, key.key);
        let is_new = busy.lock().insert(key);
        match is_new {
            true => Ok(HeldKey { busy, key }),
            false => Err(Error::IdempotencyKeyBusy),
        }
    }

    /// Returns the instance that an earlier request with the key created, as it was then.
    pub fn created_earlier(
        &self,
        caller: &Caller,
        key: &IdempotencyKey,
    ) -> Result<Option<InstanceView>, Error> {
        let now = self.clock.now();
        let found = self.db.read(|rows| key.earlier(rows, caller.user, now))?;
        Ok(found.map(|found| self.view(caller, found)))
    }
}

//! Idempotency keys of create requests. A key is durable in the write of its instance, so that a
//! retry after a crash gets the first answer.

use super::{App, InstanceView};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::sync::Arc;
use wharf_db::{Changes, Rows, Table, View, tables};
use wharf_domain::error::Error;
use wharf_domain::ids::UserId;
use wharf_domain::instance::Instance;
use wharf_domain::time::Timestamp;
use wharf_ground::caller::Caller;

/// The time for which a key is kept.
const KEPT_MS: i64 = 24 * 60 * 60 * 1000;

/// The most expired requests that one write removes. A write adds one, so they do not accumulate.
pub(super) const REMOVALS: usize = 16;

tables! {
    /// Create requests by their owner and idempotency key.
    pub const IDEMPOTENT: Table<(), (UserId, IdempotencyDigest), IdempotentCreate> =
        Table::budgeted(
            b'y',
            0,
            |(), _, create| Some(create.instance.owner),
            "The budget",
            "24 hours; each create removes up to 16 expired ones"
        )
        .indexed(|(), key, create, entries| {
            entries.put(&IDEMPOTENT_BY_TIME, ((), (millis(create.at), *key)), &())
        });
    /// The keys of [`IDEMPOTENT`] in order of time, in milliseconds.
    pub const IDEMPOTENT_BY_TIME: Table<(), (u64, (UserId, IdempotencyDigest)), ()> =
        Table::index_of(&IDEMPOTENT, b'y', 1);
}

/// The digest of an idempotency key.
pub type IdempotencyDigest = [u8; 32];

/// A create request with an idempotency key, for replays of its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdempotentCreate {
    /// Digest of the request's body.
    pub body: [u8; 32],
    /// Time of the request.
    pub at: Timestamp,
    /// The instance as it was created.
    pub instance: Instance,
}

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

    pub(super) fn digest(&self) -> IdempotencyDigest {
        self.key
    }

    /// The digest of the request's body.
    pub(super) fn body(&self) -> [u8; 32] {
        self.body
    }

    /// Returns the instance of an earlier request with the key.
    pub(super) fn earlier(
        &self,
        rows: &impl Rows,
        owner: UserId,
        now: Timestamp,
    ) -> Result<Option<Instance>, Error> {
        match rows.get(&IDEMPOTENT, ((), (owner, self.key)))? {
            Some(earlier) if earlier.at < expiry(now) => Ok(None),
            Some(earlier) if earlier.body != self.body => Err(Error::IdempotencyKeyUsed),
            earlier => Ok(earlier.map(|earlier| earlier.instance)),
        }
    }

    /// Returns the changes that keep the key with a new instance, and remove some expired ones.
    pub(super) fn kept(&self, instance: Instance, view: &View<'_>) -> Result<Changes, Error> {
        keep(
            view.rows,
            self.key,
            self.create(instance, view.now),
            expiry(view.now),
        )
    }

    fn create(&self, instance: Instance, now: Timestamp) -> IdempotentCreate {
        IdempotentCreate {
            body: self.body,
            at: now,
            instance,
        }
    }
}

fn keep(
    rows: &impl Rows,
    digest: IdempotencyDigest,
    create: IdempotentCreate,
    expired_before: Timestamp,
) -> Result<Changes, Error> {
    let mut changes = Changes::none();
    for key in rows.keys_under(&IDEMPOTENT_BY_TIME, &())?.take(REMOVALS) {
        let (at, key) = key?;
        if at >= millis(expired_before) {
            break;
        }
        // An entry without its row would stop the removal of those that follow.
        changes = changes
            .remove(&IDEMPOTENT, ((), key))
            .remove(&IDEMPOTENT_BY_TIME, ((), (at, key)));
    }
    let key = (create.instance.owner, digest);
    Ok(changes.put(&IDEMPOTENT, ((), key), create))
}

pub(super) fn millis(at: Timestamp) -> u64 {
    u64::try_from(at.0).unwrap_or_default()
}

pub(super) fn expiry(now: Timestamp) -> Timestamp {
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
        if is_new {
            Ok(HeldKey { busy, key })
        } else {
            Err(Error::IdempotencyKeyBusy)
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

#[cfg(test)]
mod tests;

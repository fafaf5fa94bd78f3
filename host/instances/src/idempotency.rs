//! Idempotency keys of requests that create something. A key is durable in the write of its row, so that a
//! retry after a crash gets the first answer.

use super::{App, InstanceView, snapshots::SnapshotView, volumes::VolumeView};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::sync::Arc;
use wharf_db::{Changes, Rows, Table, TableRow, View, tables};
use wharf_domain::error::Error;
use wharf_domain::ids::UserId;
use wharf_domain::instance::Instance;
use wharf_domain::snapshot::Snapshot;
use wharf_domain::time::Timestamp;
use wharf_domain::volume::Volume;
use wharf_ground::caller::Caller;

/// The time for which a key is kept.
const KEPT_MS: i64 = 24 * 60 * 60 * 1000;

/// The most expired requests that one write removes. A write adds one, so they do not accumulate.
const REMOVALS: usize = 16;

const BUDGET: &str = "The budget";
const KEPT: &str = "24 hours; each create removes up to 16 expired ones";

tables! {
    /// Requests that created instances, by their owner and idempotency key.
    pub const IDEMPOTENT: Table<(), RequestKey, Idempotent<Instance>> =
        Table::budgeted(b'y', 0, |(), _, request| Some(request.created.owner), BUDGET, KEPT)
            .indexed(|(), key, request, entries| {
                entries.put(&IDEMPOTENT_BY_TIME, ((), (millis(request.at), *key)), &())
            });
    /// The keys of [`IDEMPOTENT`] in order of time, in milliseconds.
    pub const IDEMPOTENT_BY_TIME: Table<(), (u64, RequestKey), ()> =
        Table::index_of(&IDEMPOTENT, b'y', 1);
    /// Requests that created volumes.
    pub const IDEMPOTENT_VOLUMES: Table<(), RequestKey, Idempotent<Volume>> =
        Table::budgeted(b'y', 2, |(), _, request| Some(request.created.owner), BUDGET, KEPT)
            .indexed(|(), key, request, entries| {
                entries.put(&IDEMPOTENT_VOLUMES_BY_TIME, ((), (millis(request.at), *key)), &())
            });
    /// The keys of [`IDEMPOTENT_VOLUMES`] in order of time, in milliseconds.
    pub const IDEMPOTENT_VOLUMES_BY_TIME: Table<(), (u64, RequestKey), ()> =
        Table::index_of(&IDEMPOTENT_VOLUMES, b'y', 3);
    /// Requests that took snapshots.
    pub const IDEMPOTENT_SNAPSHOTS: Table<(), RequestKey, Idempotent<Snapshot>> =
        Table::budgeted(b'y', 4, |(), _, request| Some(request.created.owner), BUDGET, KEPT)
            .indexed(|(), key, request, entries| {
                entries.put(&IDEMPOTENT_SNAPSHOTS_BY_TIME, ((), (millis(request.at), *key)), &())
            });
    /// The keys of [`IDEMPOTENT_SNAPSHOTS`] in order of time, in milliseconds.
    pub const IDEMPOTENT_SNAPSHOTS_BY_TIME: Table<(), (u64, RequestKey), ()> =
        Table::index_of(&IDEMPOTENT_SNAPSHOTS, b'y', 5);
}

/// The digest of an idempotency key.
pub type IdempotencyDigest = [u8; 32];

/// The owner and the digest of the key.
pub type RequestKey = (UserId, IdempotencyDigest);

/// A request with an idempotency key, for replays of its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Idempotent<T> {
    /// Digest of the request's body.
    pub body: [u8; 32],
    /// Time of the request.
    pub at: Timestamp,
    /// The row as it was created.
    pub created: T,
}

/// A row that requests with idempotency keys create.
pub trait IdempotentRow: TableRow {
    const REQUESTS: &'static Table<(), RequestKey, Idempotent<Self>>;
    const BY_TIME: &'static Table<(), (u64, RequestKey), ()>;
    /// The row in the answer to its request.
    type View;
    fn new_view(self, app: &App, caller: &Caller) -> Result<Self::View, Error>;
}

impl IdempotentRow for Instance {
    const REQUESTS: &'static Table<(), RequestKey, Idempotent<Self>> = &IDEMPOTENT;
    const BY_TIME: &'static Table<(), (u64, RequestKey), ()> = &IDEMPOTENT_BY_TIME;
    type View = InstanceView;
    fn new_view(self, app: &App, caller: &Caller) -> Result<InstanceView, Error> {
        Ok(app.view(caller, self))
    }
}

impl IdempotentRow for Volume {
    const REQUESTS: &'static Table<(), RequestKey, Idempotent<Self>> = &IDEMPOTENT_VOLUMES;
    const BY_TIME: &'static Table<(), (u64, RequestKey), ()> = &IDEMPOTENT_VOLUMES_BY_TIME;
    type View = VolumeView;
    /// No instance has a new volume.
    fn new_view(self, app: &App, caller: &Caller) -> Result<VolumeView, Error> {
        let attached_to = Vec::new();
        let view = app.kept_view(caller, self)?;
        Ok(VolumeView {
            attached_to,
            ..view
        })
    }
}

impl IdempotentRow for Snapshot {
    const REQUESTS: &'static Table<(), RequestKey, Idempotent<Self>> = &IDEMPOTENT_SNAPSHOTS;
    const BY_TIME: &'static Table<(), (u64, RequestKey), ()> = &IDEMPOTENT_SNAPSHOTS_BY_TIME;
    type View = SnapshotView;
    fn new_view(self, app: &App, caller: &Caller) -> Result<SnapshotView, Error> {
        app.kept_view(caller, self)
    }
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

    /// Returns the row that an earlier request with the key created.
    fn earlier<T: IdempotentRow>(
        &self,
        rows: &impl Rows,
        owner: UserId,
        now: Timestamp,
    ) -> Result<Option<T>, Error> {
        match rows.get(T::REQUESTS, ((), (owner, self.key)))? {
            Some(earlier) if earlier.at < expiry(now) => Ok(None),
            Some(earlier) if earlier.body != self.body => Err(Error::IdempotencyKeyUsed),
            earlier => Ok(earlier.map(|earlier| earlier.created)),
        }
    }

    /// Decides about a new row and keeps the key with it, or returns the one that an earlier request with the key
    /// created. A request whose client went away may have been decided after this one began.
    pub(crate) fn once<T: IdempotentRow>(
        key: Option<&Self>,
        view: &View<'_>,
        owner: UserId,
        decide: impl FnOnce() -> Result<(T, Changes), Error>,
    ) -> Result<(T, Changes), Error> {
        let Some(key) = key else {
            return decide();
        };
        if let Some(earlier) = key.earlier(view.rows, owner, view.now)? {
            return Ok((earlier, Changes::none()));
        }
        let (created, changes) = decide()?;
        let request = Idempotent {
            body: key.body,
            at: view.now,
            created: created.clone(),
        };
        let kept = keep(view.rows, (owner, key.key), request, expiry(view.now))?;
        Ok((created, changes.with(kept)))
    }
}

/// The changes that keep a key with its new row, and remove some expired ones.
fn keep<T: IdempotentRow>(
    rows: &impl Rows,
    key: RequestKey,
    request: Idempotent<T>,
    expired_before: Timestamp,
) -> Result<Changes, Error> {
    let mut changes = Changes::none();
    for entry in rows.keys_under(T::BY_TIME, &())?.take(REMOVALS) {
        let (at, expired) = entry?;
        if at >= millis(expired_before) {
            break;
        }
        // An entry without its row would stop the removal of those that follow.
        changes = changes
            .remove(T::REQUESTS, ((), expired))
            .remove(T::BY_TIME, ((), (at, expired)));
    }
    Ok(changes.put(T::REQUESTS, ((), key), request))
}

fn millis(at: Timestamp) -> u64 {
    u64::try_from(at.0).unwrap_or_default()
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
        if is_new {
            Ok(HeldKey { busy, key })
        } else {
            Err(Error::IdempotencyKeyBusy)
        }
    }

    /// Returns the row that an earlier request with the key created, as it was then.
    pub fn created_earlier<T: IdempotentRow>(
        &self,
        caller: &Caller,
        key: &IdempotencyKey,
    ) -> Result<Option<T::View>, Error> {
        let now = self.clock.now();
        let found = self
            .db
            .read(|rows| key.earlier::<T>(rows, caller.user, now))?;
        found.map(|row| row.new_view(self, caller)).transpose()
    }
}

#[cfg(test)]
mod tests;

//! Idempotency keys of requests that create volumes.

use super::find::Reader;
use super::read::{VolumeView, view};
use crate::idempotency::{IdempotencyDigest, REMOVALS, expiry, millis};
use crate::{App, IdempotencyKey};
use serde::{Deserialize, Serialize};
use wharf_db::{Changes, Rows, Table, View, tables};
use wharf_domain::error::Error;
use wharf_domain::ids::UserId;
use wharf_domain::time::Timestamp;
use wharf_domain::volume::Volume;
use wharf_ground::caller::Caller;

tables! {
    /// Requests that created volumes, by their owner and idempotency key.
    pub const IDEMPOTENT_VOLUMES: Table<(), (UserId, IdempotencyDigest), IdempotentVolume> =
        Table::budgeted(
            b'y',
            2,
            |(), _, create| Some(create.volume.owner),
            "The budget",
            "24 hours; each create removes up to 16 expired ones"
        )
        .indexed(|(), key, create, entries| {
            entries.put(&IDEMPOTENT_VOLUMES_BY_TIME, ((), (millis(create.at), *key)), &())
        });
    /// The keys of [`IDEMPOTENT_VOLUMES`] in order of time, in milliseconds.
    pub const IDEMPOTENT_VOLUMES_BY_TIME: Table<(), (u64, (UserId, IdempotencyDigest)), ()> =
        Table::index_of(&IDEMPOTENT_VOLUMES, b'y', 3);
}

/// A request with an idempotency key, for replays of its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdempotentVolume {
    /// Digest of the request's body.
    pub body: [u8; 32],
    pub at: Timestamp,
    /// The volume as it was created.
    pub volume: Volume,
}

/// Returns the volume of an earlier request with the key.
pub(super) fn earlier(
    key: &IdempotencyKey,
    rows: &impl Rows,
    owner: UserId,
    now: Timestamp,
) -> Result<Option<Volume>, Error> {
    match rows.get(&IDEMPOTENT_VOLUMES, ((), (owner, key.digest())))? {
        Some(earlier) if earlier.at < expiry(now) => Ok(None),
        Some(earlier) if earlier.body != key.body() => Err(Error::IdempotencyKeyUsed),
        earlier => Ok(earlier.map(|earlier| earlier.volume)),
    }
}

/// Returns the changes that keep the key with a new volume, and remove some expired ones.
pub(super) fn kept(
    key: &IdempotencyKey,
    volume: Volume,
    view: &View<'_>,
) -> Result<Changes, Error> {
    let mut changes = Changes::none();
    let expired_before = millis(expiry(view.now));
    let oldest = view.rows.keys_under(&IDEMPOTENT_VOLUMES_BY_TIME, &())?;
    for old in oldest.take(REMOVALS) {
        let (at, old) = old?;
        if at >= expired_before {
            break;
        }
        // An entry without its row would stop the removal of those that follow.
        changes = changes
            .remove(&IDEMPOTENT_VOLUMES, ((), old))
            .remove(&IDEMPOTENT_VOLUMES_BY_TIME, ((), (at, old)));
    }
    let place = (volume.owner, key.digest());
    let create = IdempotentVolume {
        body: key.body(),
        at: view.now,
        volume,
    };
    Ok(changes.put(&IDEMPOTENT_VOLUMES, ((), place), create))
}

impl App {
    /// Returns the volume that an earlier request with the key created, as it was then.
    pub fn volume_created_earlier(
        &self,
        caller: &Caller,
        key: &IdempotencyKey,
    ) -> Result<Option<VolumeView>, Error> {
        let now = self.clock.now();
        let reader = Reader::from(caller);
        self.db.read(|rows| {
            let found = earlier(key, rows, caller.user, now)?;
            let views = found.map(|volume| view(rows, &reader, volume));
            let views = views.transpose()?;
            // It had no instances then.
            Ok(views.map(|view| VolumeView {
                attached_to: Vec::new(),
                ..view
            }))
        })
    }
}

//! The end of keys: expired ones make room for new ones, and those that ended some time ago are removed.
//! Until then the operator's list has them.

use super::key::{ApiKeys, UNLIMITED, ValidKeys, expired};
use super::key_rows::{KEY_TERMS, KEYS, KeyRow, keys_of};
use std::sync::Arc;
use wharf_db::{Changes, Rows, View};
use wharf_domain::error::{Error, FieldErrors, NON_FIELD_ERRORS};
use wharf_domain::ids::UserId;
use wharf_domain::time::Timestamp;
use wharf_ground::apart::apart;

/// Keys that are looked at together, and the most that one write removes.
const BATCH: usize = 1000;

impl ApiKeys {
    /// Makes the keys of a user invalid in memory at once. Returns them.
    pub(super) fn forget(&self, user: UserId) -> ValidKeys {
        let before = self.change_valid(|valid| valid.retain(|_, key| key.user != user));
        self.access.notify();
        let before = before.iter().filter(|(_, key)| key.user == user);
        before
            .map(|(id, key)| (id.clone(), Arc::clone(key)))
            .collect()
    }

    /// Makes keys valid again whose end was not written.
    pub(super) fn remember(&self, keys: ValidKeys) {
        self.change_valid(|valid| valid.extend(keys.clone()));
    }

    /// Removes the keys that ended before a time. Returns their number.
    pub(super) async fn remove_dead(&self, ended_before: Timestamp) -> Result<usize, Error> {
        let (mut after, mut removed) = (None::<String>, 0);
        loop {
            let db = self.db.clone();
            let look = move || db.read(|rows| batch(rows, after.as_deref(), ended_before));
            let looked = apart(look).await;
            let (last, dead) = looked.map_err(|e| Error::caused("retention was aborted", e))??;
            if last.is_none() {
                return Ok(removed);
            }
            after = last;
            if dead.is_empty() {
                continue;
            }
            removed += dead.len();
            let ids = dead.clone();
            let drop_all = move || {
                let ids = ids.iter().cloned();
                ids.fold(Changes::none(), |changes, id| changes.remove(&KEYS, id))
            };
            self.db
                .write_essential(move |_| Ok(((), drop_all())))
                .await?;
            self.change_valid(|valid| dead.iter().for_each(|id| drop(valid.remove(id))));
        }
    }
}

/// The last id of a batch of keys, and the ids of those that ended before a time. A key that has ended
/// stays so, so the decision holds for the later write.
fn batch(
    rows: &impl Rows,
    after: Option<&str>,
    ended_before: Timestamp,
) -> Result<(Option<String>, Vec<String>), Error> {
    let after = after.map(|after| (after.to_owned(), ()));
    let ids = rows.keys_after(&KEYS, after)?.take(BATCH);
    let ids: Vec<_> = ids.collect::<Result<_, _>>()?;
    let last = ids.last().map(|(id, ())| id.clone());
    let mut dead = Vec::new();
    for (id, ()) in ids {
        if let Some(key) = rows.get(&KEYS, &*id)?
            && end(rows, &key)?.is_some_and(|end| end < ended_before)
        {
            dead.push(id);
        }
    }
    Ok((last, dead))
}

/// The time from which on a key is not valid.
fn end(rows: &impl Rows, key: &KeyRow) -> Result<Option<Timestamp>, Error> {
    let expires_at = rows
        .get(&KEY_TERMS, &*key.id)?
        .and_then(|terms| terms.expires_at);
    Ok(key.revoked_at.or(expires_at))
}

/// The keys of a user that are not revoked, ordered by id.
pub(super) fn unrevoked(rows: &impl Rows, user: UserId) -> Result<Vec<KeyRow>, Error> {
    let ids = keys_of(rows, user)?.into_iter();
    let keys = ids.map(|id| rows.get(&KEYS, &*id));
    keys.filter_map(Result::transpose).collect()
}

/// The keys of a user that are not revoked, as a revocation leaves them.
pub(super) fn revoked(view: &View<'_>, user: UserId) -> Result<Vec<KeyRow>, Error> {
    let mut keys = unrevoked(view.rows, user)?;
    for key in &mut keys {
        key.revoked_at = Some(view.system);
    }
    Ok(keys)
}

/// The expired keys of a user that make room for another one. Fails if all keys are valid.
pub(super) fn make_room(
    view: &View<'_>,
    user: UserId,
    most: Option<usize>,
) -> Result<Vec<String>, Error> {
    let ids = keys_of(view.rows, user)?;
    let Some(most) = most.filter(|most| ids.len() >= *most) else {
        return Ok(Vec::new());
    };
    let (all, mut gone) = (ids.len(), Vec::new());
    for id in ids {
        let terms = view.rows.get(&KEY_TERMS, &*id)?.unwrap_or(UNLIMITED);
        // A key is removed for good, so a wrong clock of the system must not decide alone.
        if expired(&terms, view.system.min(view.now)) {
            gone.push(id);
        }
    }
    if all - gone.len() >= most {
        let message = format!("a user has at most {most} keys; revoke one first");
        return Err(FieldErrors::one(NON_FIELD_ERRORS, message).into());
    }
    Ok(gone)
}

//! Removes keys that were revoked or have expired some time ago. Until then the operator's list has them.

use super::key::Keys;
use wharf_db::{Change, Changes, KeyRow, Read, ReadKeys};
use wharf_domain::error::Error;
use wharf_domain::time::Timestamp;

/// Keys that are looked at together, and the most that one write removes.
const BATCH: usize = 1000;

impl Keys {
    /// Removes the keys that ended before a time. Returns their number.
    pub(super) async fn remove_dead(&self, ended_before: Timestamp) -> Result<usize, Error> {
        let (mut after, mut removed) = (None::<String>, 0);
        loop {
            let db = self.db.clone();
            let look = move || db.read(|rows| batch(rows, after.as_deref(), ended_before));
            let looked = tokio::task::spawn_blocking(look).await;
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
                let drops = ids.iter().cloned().map(Change::DropKey);
                drops.fold(Changes::none(), Changes::with)
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
    rows: &impl ReadKeys,
    after: Option<&str>,
    ended_before: Timestamp,
) -> Result<(Option<String>, Vec<String>), Error> {
    let keys = rows.keys_after(after, BATCH)?;
    let last = keys.last().map(|key| key.id.clone());
    let mut dead = Vec::new();
    for key in keys {
        if end(rows, &key)?.is_some_and(|end| end < ended_before) {
            dead.push(key.id);
        }
    }
    Ok((last, dead))
}

/// The time from which on a key is not valid.
fn end(rows: &impl Read, key: &KeyRow) -> Result<Option<Timestamp>, Error> {
    let expires_at = rows.key_terms(&key.id)?.and_then(|terms| terms.expires_at);
    Ok(key.revoked_at.or(expires_at))
}

//! Create requests that are kept for replays, until they expire.

use super::read::Read;
use super::rows::{IdempotencyDigest, IdempotentCreate};
use super::table::{Draft, Rows};
use super::tables as t;
use std::collections::BTreeSet;
use wharf_domain::error::Error;
use wharf_domain::ids::UserId;
use wharf_domain::time::Timestamp;

/// The most expired requests that one write removes. A write adds one, so they do not accumulate.
const REMOVALS: usize = 16;

/// A key of [`t::IDEMPOTENT_BY_TIME`].
type ByTime = (u64, (UserId, IdempotencyDigest));

impl Draft<'_> {
    /// Writes a request, and removes some expired ones.
    pub(super) fn put_idempotent(
        &mut self,
        digest: IdempotencyDigest,
        create: &IdempotentCreate,
        expired_before: Timestamp,
    ) -> Result<(), Error> {
        let key = (create.instance.owner, digest);
        if let Some(old) = self.put(&t::IDEMPOTENT, &(), key, create)? {
            self.remove(&t::IDEMPOTENT_BY_TIME, &(), (millis(old.at), key))?;
        }
        self.put(&t::IDEMPOTENT_BY_TIME, &(), (millis(create.at), key), &())?;
        for (at, key) in self.oldest_idempotent(expired_before)? {
            self.remove(&t::IDEMPOTENT_BY_TIME, &(), (at, key))?;
            self.remove(&t::IDEMPOTENT, &(), key)?;
        }
        Ok(())
    }

    fn oldest_idempotent(&self, expired_before: Timestamp) -> Result<Vec<ByTime>, Error> {
        let oldest = self.keys_under(&t::IDEMPOTENT_BY_TIME, &())?;
        let mut expired = Vec::new();
        for key in oldest.take(REMOVALS) {
            let key = key?;
            if key.0 >= millis(expired_before) {
                break;
            }
            expired.push(key);
        }
        Ok(expired)
    }
}

/// Compares the requests with their order of time; one line for each contradiction.
pub(super) fn check(rows: &impl Read, wrong: &mut Vec<String>) -> Result<(), Error> {
    let mut expected = BTreeSet::new();
    for row in rows.under(&t::IDEMPOTENT, &())? {
        let (key, create) = row?;
        expected.insert((millis(create.at), key));
    }
    let stored = rows.keys_under(&t::IDEMPOTENT_BY_TIME, &())?;
    if stored.collect::<Result<BTreeSet<_>, _>>()? != expected {
        wrong.push("idempotency keys and their order of time do not go together".to_owned());
    }
    Ok(())
}

fn millis(at: Timestamp) -> u64 {
    u64::try_from(at.0).unwrap_or_default()
}

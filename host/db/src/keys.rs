//! The API keys of each user. Revoked and expired ones are removed after a while: the audit log has them.

use super::findings::{Findings, Fix, Known, compare};
use super::read::Read;
use super::rows::KeyRow;
use super::table::{Draft, Rows as _};
use super::tables as t;
use std::collections::BTreeMap;
use wharf_domain::error::Error;
use wharf_domain::ids::UserId;

impl Draft<'_> {
    pub(super) fn put_key(&mut self, key: &KeyRow) -> Result<(), Error> {
        match key.revoked_at {
            None => self.put(&t::USER_KEYS, &key.user, key.id.clone(), &())?,
            Some(_) => self.remove(&t::USER_KEYS, &key.user, key.id.clone())?,
        };
        self.put(&t::KEYS, &*key.id, (), key).map(drop)
    }

    pub(super) fn drop_key(&mut self, id: &str) -> Result<(), Error> {
        let Some(key) = self.remove(&t::KEYS, id, ())? else {
            return Ok(());
        };
        self.remove(&t::USER_KEYS, &key.user, key.id)?;
        self.remove(&t::KEY_TERMS, id, ())?;
        self.remove(&t::KEY_USES, id, ()).map(drop)
    }

    /// Makes the index of a file of an earlier version.
    pub(super) fn index_keys(&mut self) -> Result<(), Error> {
        let keys: Vec<_> = self.all(&t::KEYS)?.collect();
        for row in keys {
            match row {
                Ok((_, (), key)) => self.put_key(&key)?,
                Err(error) => tracing::error!(error = %error.chain(), "a key cannot be read"),
            }
        }
        Ok(())
    }
}

/// Questions to these rows.
#[expect(
    clippy::missing_errors_doc,
    reason = "all fail only if the file is broken"
)]
pub trait ReadKeys: Read {
    /// The ids of a user's keys that are not revoked, expired ones included.
    fn keys_of(&self, user: UserId) -> Result<Vec<String>, Error> {
        self.keys_under(&t::USER_KEYS, &user)?.collect()
    }

    /// At most `limit` keys of all users that follow the one with the id `after`.
    fn keys_after(&self, after: Option<&str>, limit: usize) -> Result<Vec<KeyRow>, Error> {
        let from = after.map(|after| (after.to_owned(), ()));
        let ids = self.keys_from(&t::KEYS, from)?;
        let ids = ids.filter(|id| !matches!(id, Ok((id, ())) if Some(&**id) == after));
        let keys = ids.take(limit).map(|id| self.key(&id?.0));
        keys.filter_map(Result::transpose).collect()
    }
}

impl<T: Read> ReadKeys for T {}

/// Compares the index with the keys, and finds rows of keys that do not exist.
pub(super) fn check(rows: &impl Read, _: &Known, wrong: &mut Findings) -> Result<(), Error> {
    let keys = rows.all_keys()?;
    let valid = keys.iter().filter(|key| key.revoked_at.is_none());
    let expected: BTreeMap<_, _> = valid.map(|key| ((key.user, key.id.clone()), ())).collect();
    let stored = rows.all(&t::USER_KEYS)?;
    let stored = stored.map(|row| row.map(|(user, id, ())| ((user, id), ())));
    let stored = stored.collect::<Result<_, _>>()?;
    compare(
        "user_keys",
        &expected,
        &stored,
        wrong,
        |(user, id), is_there| match is_there {
            Some(()) => Fix::put(&t::USER_KEYS, user, id, &()),
            None => Ok(Fix::remove(&t::USER_KEYS, user, id)),
        },
    )?;
    for row in rows.all(&t::KEY_TERMS)? {
        let (id, (), _) = row?;
        if rows.key(&id)?.is_none() {
            let fix = Fix::remove(&t::KEY_TERMS, &*id, &());
            wrong.fixable(format!("key {id}: its terms without the key"), fix);
        }
    }
    for row in rows.all(&t::KEY_USES)? {
        let (id, (), _) = row?;
        if rows.key(&id)?.is_none() {
            let fix = Fix::remove(&t::KEY_USES, &*id, &());
            wrong.fixable(format!("key {id}: its last use without the key"), fix);
        }
    }
    Ok(())
}

//! Typed tables over one tree of the file.
//!
//! A commit writes a page of each leaf that it changes, with all pages above it. So all tables are
//! in one tree. A key is the table's group, the first part of the row's key, the table's kind, and the
//! rest of the row's key. So rows that change together are neighbours.

use super::careful::{Careful, careful};
use super::codec::{decode, encode, internal};
use super::key::Part;
use super::wakes::Woken;
use redb::{
    AccessGuard, ReadOnlyTable, ReadTransaction, ReadableDatabase, ReadableTable, TableDefinition,
    WriteTransaction,
};
use serde::{Serialize, de::DeserializeOwned};
use std::borrow::Borrow;
use std::marker::PhantomData;
use wharf_domain::error::Error;

pub(super) type Bytes = &'static [u8];

pub(super) const TREE: TableDefinition<Bytes, Bytes> = TableDefinition::new("rows");

/// A table. A new table needs only its declaration.
pub struct Table<F: ?Sized, R, V> {
    group: u8,
    kind: u8,
    key: PhantomData<fn(&F) -> R>,
    value: PhantomData<fn() -> V>,
}

impl<F: Part + ?Sized, R: Part<Owned = R>, V> Table<F, R, V> {
    /// A table whose rows are in this group, distinguished by this kind from others there.
    pub const fn new(group: u8, kind: u8) -> Self {
        Self {
            group,
            kind,
            key: PhantomData,
            value: PhantomData,
        }
    }

    fn prefix(&self, first: &F, kind: u8) -> Vec<u8> {
        let mut key = vec![self.group];
        first.write(&mut key);
        key.push(kind);
        key
    }

    /// The bytes of a row's key.
    pub(super) fn key(&self, first: &F, rest: &R) -> Vec<u8> {
        let mut key = self.prefix(first, self.kind);
        rest.write(&mut key);
        key
    }

    /// The parts of a key of this group; none if it is of another table. Tables of a group may differ in
    /// their first parts, so that the byte in the place of the kind may be any of a digest. The length
    /// tells them apart then.
    fn parse(&self, key: &[u8]) -> Result<Option<(F::Owned, R)>, Error> {
        let broken = || internal("a key cannot be read");
        let mut bytes = key.get(1..).ok_or_else(broken)?;
        let first = F::read(&mut bytes).ok_or_else(broken)?;
        let (kind, mut bytes) = bytes.split_first().ok_or_else(broken)?;
        if *kind != self.kind {
            return Ok(None);
        }
        let rest = R::read(&mut bytes).filter(|_| bytes.is_empty());
        Ok(rest.map(|rest| (first, rest)))
    }
}

type Row<F, R, V> = Result<(<F as Part>::Owned, R, V), Error>;
pub(super) type Found<'a> = (AccessGuard<'a, Bytes>, AccessGuard<'a, Bytes>);

/// Reads rows: of a commit, or of a write under way.
pub trait Rows {
    /// The tree that has all tables.
    fn tree(&self) -> &impl ReadableTable<Bytes, Bytes>;

    /// One row.
    fn get<F: Part + ?Sized, R: Part<Owned = R>, V: DeserializeOwned>(
        &self,
        table: &Table<F, R, V>,
        first: &F,
        rest: R,
    ) -> Result<Option<V>, Error> {
        let key = table.key(first, &rest);
        let row = careful(&key, || self.tree().get(key.as_slice()))?;
        row.map(|row| decode(row.value())).transpose()
    }

    /// The rows of one first part, in order.
    fn under<F: Part + ?Sized, R: Part<Owned = R>, V: DeserializeOwned>(
        &self,
        table: &Table<F, R, V>,
        first: &F,
    ) -> Result<impl Iterator<Item = Result<(R, V), Error>>, Error> {
        let rows = range(self.tree(), table, first)?;
        Ok(rows.filter_map(|row| {
            read(table, row, decode)
                .map(|found| found.map(|(_, rest, value)| (rest, value)))
                .transpose()
        }))
    }

    /// The rows of one first part whose rest is `from` or follows it, in order.
    fn under_from<F: Part + ?Sized, R: Part<Owned = R>, V: DeserializeOwned>(
        &self,
        table: &Table<F, R, V>,
        first: &F,
        from: R,
    ) -> Result<impl Iterator<Item = Result<(R, V), Error>>, Error> {
        let (from, to) = (table.key(first, &from), table.prefix(first, table.kind + 1));
        let rows = Careful::range(self.tree(), &from, &to)?;
        Ok(rows.filter_map(|row| {
            read(table, row, decode)
                .map(|found| found.map(|(_, rest, value)| (rest, value)))
                .transpose()
        }))
    }

    /// The last row of one first part.
    fn last_under<F: Part + ?Sized, R: Part<Owned = R>, V: DeserializeOwned>(
        &self,
        table: &Table<F, R, V>,
        first: &F,
    ) -> Result<Option<(R, V)>, Error> {
        let Some(row) = range(self.tree(), table, first)?.next_back() else {
            return Ok(None);
        };
        Ok(read(table, row, decode)?.map(|(_, rest, value)| (rest, value)))
    }

    /// The rest of the keys of one first part that are `from` or follow it, in order.
    fn keys_under_from<F: Part + ?Sized, R: Part<Owned = R>, V>(
        &self,
        table: &Table<F, R, V>,
        first: &F,
        from: R,
    ) -> Result<impl Iterator<Item = Result<R, Error>>, Error> {
        let (from, to) = (table.key(first, &from), table.prefix(first, table.kind + 1));
        let rows = Careful::range(self.tree(), &from, &to)?;
        Ok(rows.filter_map(|row| {
            read(table, row, |_| Ok(()))
                .map(|found| found.map(|(_, rest, ())| rest))
                .transpose()
        }))
    }

    /// The rest of the keys of one first part that precede `to`, the last one first.
    fn keys_under_before<F: Part + ?Sized, R: Part<Owned = R>, V>(
        &self,
        table: &Table<F, R, V>,
        first: &F,
        to: R,
    ) -> Result<impl Iterator<Item = Result<R, Error>>, Error> {
        let (from, to) = (table.prefix(first, table.kind), table.key(first, &to));
        let rows = Careful::range(self.tree(), &from, &to)?;
        Ok(rows.rev().filter_map(|row| {
            read(table, row, |_| Ok(()))
                .map(|found| found.map(|(_, rest, ())| rest))
                .transpose()
        }))
    }

    /// The rest of the keys of one first part, in order.
    fn keys_under<F: Part + ?Sized, R: Part<Owned = R>, V>(
        &self,
        table: &Table<F, R, V>,
        first: &F,
    ) -> Result<impl Iterator<Item = Result<R, Error>>, Error> {
        let rows = range(self.tree(), table, first)?;
        Ok(rows.filter_map(|row| {
            read(table, row, |_| Ok(()))
                .map(|found| found.map(|(_, rest, ())| rest))
                .transpose()
        }))
    }

    /// The keys that follow `from` or are equal to it, in order; all keys without it. This reads the
    /// other tables in the group too.
    fn keys_from<F: Part + ?Sized, R: Part<Owned = R>, V>(
        &self,
        table: &Table<F, R, V>,
        from: Option<(F::Owned, R)>,
    ) -> Result<impl Iterator<Item = Result<(F::Owned, R), Error>>, Error>
    where
        F::Owned: Borrow<F>,
    {
        let from = from.map_or_else(
            || vec![table.group],
            |(first, rest)| table.key(first.borrow(), &rest),
        );
        let rows = Careful::range(self.tree(), &from, &[table.group + 1])?;
        Ok(rows.filter_map(|row| {
            read(table, row, |_| Ok(()))
                .map(|found| found.map(|(first, rest, ())| (first, rest)))
                .transpose()
        }))
    }

    /// All rows. This reads those of the other tables in the group too.
    fn all<F: Part + ?Sized, R: Part<Owned = R>, V: DeserializeOwned>(
        &self,
        table: &Table<F, R, V>,
    ) -> Result<impl DoubleEndedIterator<Item = Row<F, R, V>>, Error> {
        let rows = Careful::range(self.tree(), &[table.group], &[table.group + 1])?;
        Ok(rows.filter_map(|row| read(table, row, decode).transpose()))
    }
}

fn range<'a, F: Part + ?Sized, R: Part<Owned = R>, V>(
    tree: &'a impl ReadableTable<Bytes, Bytes>,
    table: &Table<F, R, V>,
    first: &F,
) -> Result<Careful<'a>, Error> {
    let from = table.prefix(first, table.kind);
    let to = table.prefix(first, table.kind + 1);
    Careful::range(tree, &from, &to)
}

fn read<F: Part + ?Sized, R: Part<Owned = R>, V, T>(
    table: &Table<F, R, V>,
    row: Result<Found<'_>, Error>,
    value: impl FnOnce(&[u8]) -> Result<T, Error>,
) -> Result<Option<(F::Owned, R, T)>, Error> {
    let (key, bytes) = row?;
    match table.parse(key.value())? {
        Some((first, rest)) => Ok(Some((first, rest, value(bytes.value())?))),
        None => Ok(None),
    }
}

/// The rows of the last commit.
pub struct Snapshot(ReadOnlyTable<Bytes, Bytes>);

impl Snapshot {
    /// Opens the rows as they are now.
    pub fn open(file: &redb::Database) -> Result<Self, Error> {
        let txn: ReadTransaction = file.begin_read().map_err(internal)?;
        Ok(Self(txn.open_table(TREE).map_err(internal)?))
    }
}

impl Rows for Snapshot {
    fn tree(&self) -> &impl ReadableTable<Bytes, Bytes> {
        &self.0
    }
}

/// The rows as a write leaves them.
pub struct Draft<'t> {
    tree: redb::Table<'t, Bytes, Bytes>,
    changed: bool,
    /// The owners that the changes concern.
    pub(super) woken: Woken,
}

impl Rows for Draft<'_> {
    fn tree(&self) -> &impl ReadableTable<Bytes, Bytes> {
        &self.tree
    }
}

impl<'t> Draft<'t> {
    /// Opens the rows in a transaction; a new file gets its tree.
    pub fn open(txn: &'t WriteTransaction) -> Result<Self, Error> {
        Ok(Self {
            tree: txn.open_table(TREE).map_err(internal)?,
            changed: false,
            woken: Woken::default(),
        })
    }

    /// Whether a row was written or removed.
    pub fn is_changed(&self) -> bool {
        self.changed
    }

    /// Writes a row. Returns the one that was there.
    pub fn put<F: Part + ?Sized, R: Part<Owned = R>, V: Serialize + DeserializeOwned>(
        &mut self,
        table: &Table<F, R, V>,
        first: &F,
        rest: R,
        value: &V,
    ) -> Result<Option<V>, Error> {
        self.put_encoded(table, first, rest, &encode(value)?)
    }

    /// Writes a row whose value is encoded already.
    pub fn put_encoded<F: Part + ?Sized, R: Part<Owned = R>, V: DeserializeOwned>(
        &mut self,
        table: &Table<F, R, V>,
        first: &F,
        rest: R,
        value: &[u8],
    ) -> Result<Option<V>, Error> {
        self.changed = true;
        let key = table.key(first, &rest);
        let old = careful(&key, || self.tree.insert(key.as_slice(), value))?;
        old.map(|old| decode(old.value())).transpose()
    }

    /// Writes or removes a row by its bytes.
    pub(super) fn put_raw(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), Error> {
        self.changed = true;
        match value {
            Some(value) => drop(self.tree.insert(key, value).map_err(internal)?),
            None => drop(self.tree.remove(key).map_err(internal)?),
        }
        Ok(())
    }

    /// Removes a row. Returns the one that was there.
    pub fn remove<F: Part + ?Sized, R: Part<Owned = R>, V: DeserializeOwned>(
        &mut self,
        table: &Table<F, R, V>,
        first: &F,
        rest: R,
    ) -> Result<Option<V>, Error> {
        let key = table.key(first, &rest);
        let old = careful(&key, || self.tree.remove(key.as_slice()))?;
        self.changed |= old.is_some();
        old.map(|old| decode(old.value())).transpose()
    }
}

#[cfg(test)]
mod tests {
    use crate::tables as t;
    use wharf_domain::ids::UserId;

    #[test]
    fn a_key_of_an_index_is_never_one_of_its_table() {
        for byte in 0..=u8::MAX {
            let digest = [byte; 32];
            let index = t::PASSKEY_USERS.key(&(), &digest);
            assert!(t::PASSKEYS.parse(&index).unwrap().is_none());
            let index = t::IDENTITY_USERS.key(&(), &digest);
            assert!(t::IDENTITIES.parse(&index).unwrap().is_none());
            let row = t::PASSKEYS.key(&UserId(byte.into()), &digest);
            assert!(t::PASSKEY_USERS.parse(&row).unwrap().is_none());
            let (user, found) = t::PASSKEYS.parse(&row).unwrap().unwrap();
            assert_eq!((user, found), (UserId(byte.into()), digest));
        }
    }
}

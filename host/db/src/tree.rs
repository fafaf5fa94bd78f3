//! The one tree of the file that has the rows of all tables, and its reading.

use super::careful::{Careful, careful};
use super::codec::{decode, internal};
use super::key::{KeyPart, TableKey};
use super::table::{Table, TableRow};
use redb::{
    AccessGuard, ReadOnlyTable, ReadTransaction, ReadableDatabase, ReadableTable, TableDefinition,
};
use wharf_domain::error::Error;

pub(super) type Bytes = &'static [u8];

pub(super) const TREE: TableDefinition<Bytes, Bytes> = TableDefinition::new("rows");

pub(super) type Found<'a> = (AccessGuard<'a, Bytes>, AccessGuard<'a, Bytes>);

/// Reads rows: of a commit, or of a write under way.
#[expect(
    clippy::missing_errors_doc,
    reason = "all fail only if the file is broken"
)]
pub trait Rows {
    /// The tree that has all tables.
    #[doc(hidden)]
    fn tree(&self) -> &impl ReadableTable<Bytes, Bytes>;

    /// The bytes of a range of keys.
    #[doc(hidden)]
    fn range(&self, from: &[u8], to: &[u8]) -> Result<Careful<'_>, Error> {
        Careful::range(self.tree(), from, to)
    }

    /// Whether there is a key.
    #[doc(hidden)]
    fn has(&self, key: &[u8]) -> Result<bool, Error> {
        Ok(careful(key, || self.tree().get(key))?.is_some())
    }

    /// One row.
    fn get<F: KeyPart, R: KeyPart, V: TableRow>(
        &self,
        table: &Table<F, R, V>,
        key: impl TableKey<F, R>,
    ) -> Result<Option<V>, Error> {
        let (first, rest) = key.parts();
        let key = table.key(&first, &rest);
        let row = careful(&key, || self.tree().get(key.as_slice()))?;
        row.map(|row| decode(row.value())).transpose()
    }

    /// The rows of one first part, in order.
    fn under<F: KeyPart, R: KeyPart, V: TableRow>(
        &self,
        table: &Table<F, R, V>,
        first: &F,
    ) -> Result<impl DoubleEndedIterator<Item = Result<(R, V), Error>>, Error> {
        let (from, to) = table.range(first);
        Ok(rows(table, self.range(&from, &to)?).map(without_first))
    }

    /// The rows of one first part whose rest is `from` or follows it, in order.
    fn under_from<F: KeyPart, R: KeyPart, V: TableRow>(
        &self,
        table: &Table<F, R, V>,
        first: &F,
        from: R,
    ) -> Result<impl Iterator<Item = Result<(R, V), Error>>, Error> {
        let (from, to) = (table.key(first, &from), table.range(first).1);
        Ok(rows(table, self.range(&from, &to)?).map(without_first))
    }

    /// The last row of one first part.
    fn last_under<F: KeyPart, R: KeyPart, V: TableRow>(
        &self,
        table: &Table<F, R, V>,
        first: &F,
    ) -> Result<Option<(R, V)>, Error> {
        self.under(table, first)?.next_back().transpose()
    }

    /// The rest of the keys of one first part, in order.
    fn keys_under<F: KeyPart, R: KeyPart, V>(
        &self,
        table: &Table<F, R, V>,
        first: &F,
    ) -> Result<impl Iterator<Item = Result<R, Error>>, Error> {
        let (from, to) = table.range(first);
        Ok(keys(table, self.range(&from, &to)?).map(rest))
    }

    /// The rest of the keys of one first part that are `from` or follow it, in order.
    fn keys_under_from<F: KeyPart, R: KeyPart, V>(
        &self,
        table: &Table<F, R, V>,
        first: &F,
        from: R,
    ) -> Result<impl Iterator<Item = Result<R, Error>>, Error> {
        let (from, to) = (table.key(first, &from), table.range(first).1);
        Ok(keys(table, self.range(&from, &to)?).map(rest))
    }

    /// The rest of the keys of one first part that precede `to`, the last one first.
    fn keys_under_before<F: KeyPart, R: KeyPart, V>(
        &self,
        table: &Table<F, R, V>,
        first: &F,
        to: R,
    ) -> Result<impl Iterator<Item = Result<R, Error>>, Error> {
        let (from, to) = (table.range(first).0, table.key(first, &to));
        Ok(keys(table, self.range(&from, &to)?).rev().map(rest))
    }

    /// The keys that follow `after`, in order; all keys without it. This may read the other tables in the
    /// group too.
    fn keys_after<F: KeyPart, R: KeyPart, V>(
        &self,
        table: &Table<F, R, V>,
        after: Option<(F, R)>,
    ) -> Result<impl Iterator<Item = Result<(F, R), Error>>, Error> {
        let (from, to) = table.bounds();
        let after = after.map(|(first, rest)| table.key(&first, &rest));
        // The least key that follows it.
        let from = after.map_or(from, |key| [&key[..], &[0]].concat());
        Ok(keys(table, self.range(&from, &to)?))
    }

    /// All rows. This may read those of the other tables in the group too.
    fn all<F: KeyPart, R: KeyPart, V: TableRow>(
        &self,
        table: &Table<F, R, V>,
    ) -> Result<impl DoubleEndedIterator<Item = Result<(F, R, V), Error>>, Error> {
        let (from, to) = table.bounds();
        Ok(rows(table, self.range(&from, &to)?))
    }
}

fn without_first<F, R, V>(row: Result<(F, R, V), Error>) -> Result<(R, V), Error> {
    row.map(|(_, rest, row)| (rest, row))
}

fn rest<F, R>(key: Result<(F, R), Error>) -> Result<R, Error> {
    key.map(|(_, rest)| rest)
}

fn rows<F: KeyPart, R: KeyPart, V: TableRow>(
    table: &Table<F, R, V>,
    found: Careful<'_>,
) -> impl DoubleEndedIterator<Item = Result<(F, R, V), Error>> {
    found.filter_map(|row| {
        let read = |(key, bytes): Found<'_>| match table.parse(key.value())? {
            Some((first, rest)) => Ok(Some((first, rest, decode(bytes.value())?))),
            None => Ok(None),
        };
        row.and_then(read).transpose()
    })
}

fn keys<F: KeyPart, R: KeyPart, V>(
    table: &Table<F, R, V>,
    found: Careful<'_>,
) -> impl DoubleEndedIterator<Item = Result<(F, R), Error>> {
    found.filter_map(|row| {
        row.and_then(|(key, _)| table.parse(key.value()))
            .transpose()
    })
}

/// The rows of the last commit.
pub struct ReadRows(ReadOnlyTable<Bytes, Bytes>);

impl ReadRows {
    /// Opens the rows as they are now.
    pub(super) fn open(file: &redb::Database) -> Result<Self, Error> {
        let txn: ReadTransaction = file.begin_read().map_err(internal)?;
        Ok(Self(txn.open_table(TREE).map_err(internal)?))
    }
}

impl Rows for ReadRows {
    fn tree(&self) -> &impl ReadableTable<Bytes, Bytes> {
        &self.0
    }
}

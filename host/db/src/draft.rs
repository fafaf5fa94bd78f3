//! The rows as a write leaves them. Indices follow each change, and so do the rows that are parts of a row.

use super::careful::careful;
use super::codec::{decode, encode, internal};
use super::key::{KeyPart, TableKey};
use super::schema::DbSchema;
use super::table::{Entries, Id, IndexEntry, Table, TableRow};
use super::tree::{Bytes, Rows, TREE};
use super::wakes::Woken;
use redb::{ReadableTable, WriteTransaction};
use std::any::Any;
use wharf_domain::error::Error;

type AnyRow = Box<dyn Any + Send>;

/// A change of a row that a projection follows.
pub struct Followed {
    id: Id,
    key: AnyRow,
    before: Option<AnyRow>,
    after: Option<AnyRow>,
}

impl Followed {
    pub(super) fn new<K: Send + 'static, V: Send + 'static>(
        id: Id,
        key: K,
        before: Option<V>,
        after: Option<V>,
    ) -> Self {
        let row = |row: V| -> AnyRow { Box::new(row) };
        Self {
            id,
            key: Box::new(key),
            before: before.map(row),
            after: after.map(row),
        }
    }

    /// The change as one of this table.
    pub(super) fn of<K: 'static, V: 'static>(
        &self,
        id: Id,
    ) -> Option<(&K, Option<&V>, Option<&V>)> {
        let key = self.key.downcast_ref().filter(|_| self.id == id)?;
        let before = self.before.as_ref().and_then(|row| row.downcast_ref());
        let after = self.after.as_ref().and_then(|row| row.downcast_ref());
        Some((key, before, after))
    }

    /// The change that takes this one back.
    pub(super) fn reversed(self) -> Self {
        Self {
            before: self.after,
            after: self.before,
            ..self
        }
    }
}

/// The rows as a write leaves them.
pub struct Draft<'t> {
    tree: redb::Table<'t, Bytes, Bytes>,
    schema: &'static DbSchema,
    changed: bool,
    /// The owners that the changes concern.
    pub(super) woken: Woken,
    /// The changes that the projection has not seen.
    pub(super) followed: Vec<Followed>,
}

impl Rows for Draft<'_> {
    fn tree(&self) -> &impl ReadableTable<Bytes, Bytes> {
        &self.tree
    }
}

impl<'t> Draft<'t> {
    /// Opens the rows in a transaction; a new file gets its tree.
    pub(super) fn open(
        txn: &'t WriteTransaction,
        schema: &'static DbSchema,
    ) -> Result<Self, Error> {
        Ok(Self {
            tree: txn.open_table(TREE).map_err(internal)?,
            schema,
            changed: false,
            woken: Woken::default(),
            followed: Vec::new(),
        })
    }

    /// Whether a row was written or removed.
    pub(super) fn is_changed(&self) -> bool {
        self.changed
    }

    /// Writes a row. Returns the one that was there.
    pub fn put<F: KeyPart, R: KeyPart, V: TableRow>(
        &mut self,
        table: &Table<F, R, V>,
        key: impl TableKey<F, R>,
        row: &V,
    ) -> Result<Option<V>, Error> {
        let (first, rest) = key.parts();
        let key = table.key(&first, &rest);
        let bytes = encode(row)?;
        let old = careful(&key, || self.tree.insert(key.as_slice(), bytes.as_slice()))?;
        let old: Option<V> = old.map(|old| decode(old.value())).transpose()?;
        self.changed = true;
        let before = table.entries(&first, &rest, old.as_ref())?;
        self.index(&before, &table.entries(&first, &rest, Some(row))?)?;
        table.note(self, (first, rest), old.as_ref(), Some(row))?;
        Ok(old)
    }

    /// Removes a row, with the rows that are parts of it. Returns the one that was there.
    pub fn remove<F: KeyPart, R: KeyPart, V: TableRow>(
        &mut self,
        table: &Table<F, R, V>,
        key: impl TableKey<F, R>,
    ) -> Result<Option<V>, Error> {
        let (first, rest) = key.parts();
        let key = table.key(&first, &rest);
        let old = careful(&key, || self.tree.remove(key.as_slice()))?;
        let Some(old) = old.map(|old| decode::<V>(old.value())).transpose()? else {
            return Ok(None);
        };
        self.changed = true;
        let before = table.entries(&first, &rest, Some(&old))?;
        self.index(&before, &Entries::default())?;
        let mut of = Vec::new();
        first.write(&mut of);
        rest.write(&mut of);
        for part in self.schema.parts_of(table.id()) {
            part.remove_parts(self, &of)?;
        }
        table.note(self, (first, rest), Some(&old), None)?;
        Ok(Some(old))
    }

    /// Writes the entries of a table in its indices again.
    pub fn index_again<F: KeyPart, R: KeyPart, V: TableRow>(
        &mut self,
        table: &Table<F, R, V>,
    ) -> Result<(), Error> {
        let mut entries = Vec::new();
        for row in self.all(table)? {
            match row {
                Ok((first, rest, row)) => entries.push(table.entries(&first, &rest, Some(&row))?),
                Err(error) => tracing::error!(error = %error.chain(), "a row cannot be read"),
            }
        }
        let none = Entries::default();
        entries.iter().try_for_each(|row| self.index(&none, row))
    }

    /// Makes indices follow a change of a row.
    fn index(&mut self, before: &Entries, after: &Entries) -> Result<(), Error> {
        for entry in &before.0 {
            if after.row(&entry.key).is_none() {
                self.put_raw(&entry.key, None)?;
            }
        }
        for IndexEntry { key, row, .. } in &after.0 {
            if before.row(key) != Some(row) {
                self.put_raw(key, Some(row))?;
            }
        }
        Ok(())
    }

    /// Writes or removes a row by its bytes.
    pub(super) fn put_raw(&mut self, key: &[u8], row: Option<&[u8]>) -> Result<(), Error> {
        self.changed = true;
        let done = match row {
            Some(row) => careful(key, || self.tree.insert(key, row))?,
            None => careful(key, || self.tree.remove(key))?,
        };
        drop(done);
        Ok(())
    }
}

//! A table whose changes are recorded as they are made.

use super::codec::internal;
use super::journal::{Record, Step};
use crate::domain::error::Error;
use redb::{
    AccessGuard, Key, Table, TableDefinition, TableError, TableHandle, Value, WriteTransaction,
};

/// A table of one write transaction.
pub struct Logged<'t, K: Key + 'static, V: Value + 'static> {
    definition: TableDefinition<'static, K, V>,
    /// For reading.
    pub table: Table<'t, K, V>,
}

impl<'t, K: Key, V: Value> Logged<'t, K, V> {
    /// Opens it, and makes it at the first time.
    pub fn open(
        txn: &'t WriteTransaction,
        definition: TableDefinition<'static, K, V>,
    ) -> Result<Self, TableError> {
        let table = txn.open_table(definition)?;
        Ok(Self { definition, table })
    }

    /// Writes a row over the one that is there, which it returns.
    pub fn insert<'k, 'v>(
        &mut self,
        record: &mut Record,
        key: K::SelfType<'k>,
        value: V::SelfType<'v>,
    ) -> Result<Option<AccessGuard<'_, V>>, Error> {
        record.add(&Step {
            table: self.definition.name(),
            there: true,
            key: K::as_bytes(&key).as_ref(),
            value: V::as_bytes(&value).as_ref(),
        })?;
        self.table.insert(key, value).map_err(internal)
    }

    /// Removes a row, which it returns.
    pub fn remove<'k>(
        &mut self,
        record: &mut Record,
        key: K::SelfType<'k>,
    ) -> Result<Option<AccessGuard<'_, V>>, Error> {
        record.add(&Step {
            table: self.definition.name(),
            there: false,
            key: K::as_bytes(&key).as_ref(),
            value: &[],
        })?;
        self.table.remove(key).map_err(internal)
    }

    /// Does again what was recorded; says so if it was with this table.
    pub fn redo(&mut self, step: &Step<'_>) -> Result<bool, Error> {
        if step.table != self.definition.name() {
            return Ok(false);
        }
        let key = K::from_bytes(step.key);
        if step.there {
            let value = V::from_bytes(step.value);
            self.table.insert(key, value).map_err(internal)?;
        } else {
            self.table.remove(key).map_err(internal)?;
        }
        Ok(true)
    }
}

//! The contradictions that a check of the database finds, and the rows that mend them.

use super::codec::encode;
use super::draft::Draft;
use super::schema::DbSchema;
use super::table::{Declared, Id, IndexEntry, Relation};
use super::tree::Snapshot;
use serde::Serialize;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use wharf_domain::error::Error;

/// The most unreadable rows of a table: one with more cannot be checked.
const MAX_UNREADABLE: usize = 100;

/// A contradiction between rows.
#[derive(Debug)]
pub struct FsckFinding {
    /// One line.
    pub text: String,
    /// The change that mends it; none if only a backup can.
    pub(super) fix: Option<Fix>,
}

impl FsckFinding {
    /// Whether a repair mends it.
    pub fn is_repairable(&self) -> bool {
        self.fix.is_some()
    }
}

/// A row to write, or without a value to remove.
#[derive(Debug)]
pub(super) struct Fix {
    key: Vec<u8>,
    row: Option<Vec<u8>>,
}

impl Fix {
    pub fn put(key: Vec<u8>, row: &impl Serialize) -> Result<Self, Error> {
        let row = Some(encode(row)?);
        Ok(Self { key, row })
    }

    pub fn remove(key: Vec<u8>) -> Self {
        Self { key, row: None }
    }

    pub fn apply(&self, rows: &mut Draft<'_>) -> Result<(), Error> {
        rows.put_raw(&self.key, self.row.as_deref())
    }
}

/// The contradictions so far.
#[derive(Default)]
pub struct Findings(pub(super) Vec<FsckFinding>);

impl Findings {
    /// Adds a contradiction that only a backup can mend.
    pub fn push(&mut self, text: String) {
        self.0.push(FsckFinding { text, fix: None });
    }

    /// Adds a contradiction with the change that mends it.
    pub(super) fn fixable(&mut self, text: String, fix: Fix) {
        let fix = Some(fix);
        self.0.push(FsckFinding { text, fix });
    }
}

/// A check of all tables.
#[derive(Default)]
pub struct Check {
    pub(super) findings: Findings,
    /// The entries of indices that follow from the rows, by key.
    derived: BTreeMap<Vec<u8>, IndexEntry>,
    /// Entries that follow from two rows, with the value of the other one.
    twice: Vec<(IndexEntry, Vec<u8>)>,
    /// Tables with rows that cannot be read.
    unreadable: BTreeMap<Id, usize>,
}

impl Check {
    /// Notes an entry of an index that follows from a row.
    pub(super) fn derive(&mut self, entry: IndexEntry) {
        match self.derived.entry(entry.key.clone()) {
            Entry::Vacant(place) => drop(place.insert(entry)),
            Entry::Occupied(mut place) if place.get().row != entry.row => {
                let row = entry.row.clone();
                self.twice.push((place.insert(entry), row));
            }
            Entry::Occupied(_) => {}
        }
    }

    /// Notes a row that cannot be read. Fails if there are too many.
    pub(super) fn unreadable(&mut self, of: Id, name: &str, error: &Error) -> Result<(), Error> {
        let text = format!("{name}: a row cannot be read: {}", error.chain());
        self.findings.push(text);
        let number = self.unreadable.entry(of).or_default();
        *number += 1;
        if *number == MAX_UNREADABLE {
            return Err(Error::internal("too many rows cannot be read"));
        }
        Ok(())
    }

    /// Checks the rows of all tables, and compares each index with the rows that it follows from. An error of
    /// a table ends the check of it alone.
    pub(super) fn tables(&mut self, rows: &Snapshot, schema: &DbSchema) {
        let mut incomplete = BTreeSet::new();
        for table in schema.all() {
            if let Err(error) = table.check(rows, self) {
                incomplete.insert(table.facts().id);
                self.failed(&error);
            }
        }
        incomplete.extend(self.unreadable.keys());
        for table in schema.all() {
            if let Relation::IndexOf(source) = table.facts().relation {
                let is_whole = !incomplete.contains(&source.facts().id);
                if let Err(error) = self.index(rows, table, is_whole) {
                    self.failed(&error);
                }
            }
            if let Some(check) = table.facts().check
                && let Err(error) = check(rows, &mut self.findings)
            {
                self.failed(&error);
            }
        }
    }

    /// Notes an error that ends a part of the check.
    pub(super) fn failed(&mut self, error: &Error) {
        let text = format!("rows cannot be read: {}", error.chain());
        self.findings.push(text);
    }

    /// Compares an index with the entries that follow from its table. If rows of that table cannot be read, an
    /// entry may be of one of them.
    fn index(
        &mut self,
        rows: &Snapshot,
        index: &dyn Declared,
        is_whole: bool,
    ) -> Result<(), Error> {
        let (name, id) = (index.facts().name.to_ascii_lowercase(), index.facts().id);
        for (entry, row) in self.twice.iter().filter(|(entry, _)| entry.index == id) {
            let [one, other] = [&entry.row, row].map(|row| index.describe(&entry.key, row));
            let text = format!("{name} is to have {one} and {other}");
            self.findings.push(text);
        }
        let mut extra = Vec::new();
        index.each_bytes(rows, &mut |key, row| match self.derived.get(key) {
            // An index may be as large as the database.
            Some(entry) if entry.row == row => drop(self.derived.remove(key)),
            None if is_whole => extra.push((key.to_vec(), index.describe(key, row))),
            _ => {}
        })?;
        for (key, entry) in self.derived.extract_if(.., |_, entry| entry.index == id) {
            let text = format!("{name} lacks {}", index.describe(&key, &entry.row));
            let row = Some(entry.row);
            self.findings.fixable(text, Fix { key, row });
        }
        for (key, entry) in extra {
            let text = format!("{name} has {entry}, which no row says");
            self.findings.fixable(text, Fix::remove(key));
        }
        Ok(())
    }
}
